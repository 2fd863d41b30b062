// NEON, which every AArch64 processor has: 128-bit vectors, and all conversions between f16 and f32.
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

constinit const Target targets::neon{.name = "neon",
                                     .architecture = &aarch64,
                                     .contains = &generic,
                                     .needs = "neon",
                                     .names_processor = true,
                                     .needs_for_f16 = "fullfp16",
                                     .vector_bits = 128,
                                     .rounds_to_integer = true,
                                     .converts_f16 = true,
                                     .registers = 32,
                                     .shuffled_bits = 128};

}  // namespace lamina::cpu
