// SVE: vectors of 128 to 512 bits, with the machine's length, which is known when code is generated; masked memory accesses.
// Code for one length only runs on machines with that length.
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

constinit const Target targets::sve{.name = "sve",
                                    .architecture = &aarch64,
                                    .contains = &neon,
                                    .needs = "sve",
                                    .names_processor = true,
                                    .needs_for_f16 = "fullfp16",
                                    .vector_bits = 0,
                                    .rounds_to_integer = true,
                                    .converts_f16 = true,
                                    .has_many_registers = true,
                                    .registers = 32,
                                    .shuffled_bits = 128};

}  // namespace lamina::cpu
