// Instruction sets that code is made for.
#pragma once

namespace lamina::cpu {

enum class Isa { generic, avx2, avx512 };

// The best that the machine offers, capped by LAMINA_MAX_ISA=generic|avx2|avx512. Throws Error(invalid_arguments) for a
// LAMINA_MAX_ISA that is none of these.
Isa chosen_isa();
int vector_bits(Isa isa);

}  // namespace lamina::cpu
