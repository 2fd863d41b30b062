// Replaces onednn/ in a build without it.
#include "backends/cpu/library/library_ops.h"

namespace lamina::cpu {

std::vector<LibraryOp> onednn_ops() { return {}; }

}  // namespace lamina::cpu
