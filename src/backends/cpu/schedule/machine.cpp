#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

std::vector<int> vector_widths(const Machine& machine) {
  std::vector<int> widths;
  for (int bits = vector_bits(machine); bits >= targets::generic.vector_bits; bits /= 2) widths.push_back(bits);
  return widths;
}

Machine capped(Machine machine, const Target& most) {
  Instructions& own = machine.instructions;
  if (targets::contains(most, *own.target)) return machine;
  const Target& best = targets::common(*own.target, most);
  own = {.architecture = own.architecture, .target = &best, .scalable_bits = best.vector_bits == 0 ? own.scalable_bits : 0};
  machine.features = "";
  machine.cpu = best.plain_cpu != nullptr ? best.plain_cpu : own.architecture->plain_cpu;
  return machine;
}

}  // namespace lamina::cpu
