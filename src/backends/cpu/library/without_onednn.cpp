// Replaces onednn/ in a build without it.
#include "backends/cpu/library/library_ops.h"

namespace lamina::cpu {

std::vector<LibraryOp> onednn_ops() { return {}; }
bool onednn_multiplies_integers() { return false; }
bool onednn_convolves_integers() { return false; }

}  // namespace lamina::cpu
