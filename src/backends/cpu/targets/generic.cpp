// What every processor of its kind has: vectors of 128 bits, and little else that is counted on.
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

constinit const Target targets::generic{.name = "generic"};

}  // namespace lamina::cpu
