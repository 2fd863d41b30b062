// The baseline of every processor of its architecture: 128-bit vectors, and no optional features.
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

constinit const Target targets::generic{.name = "generic"};

}  // namespace lamina::cpu
