#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

int vector_bits(Isa isa) { return isa == Isa::avx512 ? 512 : isa == Isa::avx2 ? 256 : 128; }

Machine capped(Machine machine, Isa most) {
  if (machine.isa <= most) return machine;
  machine.isa = most;
  machine.features = "";
  machine.cpu = most == Isa::avx2 ? "x86-64-v3" : "x86-64";
  machine.flags = {.sse41 = most == Isa::avx2, .f16c = most == Isa::avx2};
  return machine;
}

}  // namespace lamina::cpu
