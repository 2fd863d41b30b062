#include "backends/cpu/targets/target.h"

#include <array>

namespace lamina::cpu {

namespace targets {

std::span<const Architecture* const> architectures() {
  static constexpr std::array<const Architecture*, 2> kAll{&x86_64, &aarch64};
  return kAll;
}

std::span<const Target* const> of(const Architecture& architecture) {
  static constexpr std::array<const Target*, 3> kX86{&generic, &avx2, &avx512}, kArm{&generic, &neon, &sve};
  return &architecture == &aarch64 ? kArm : kX86;
}

bool contains(const Target& target, const Target& other) {
  for (const Target* each = &target; each != nullptr; each = each->contains) {
    if (each == &other) return true;
  }
  return false;
}

const Target& common(const Target& target, const Target& other) {
  const Target* best = &target;
  while (!contains(other, *best)) best = best->contains;  // all of them contain generic
  return *best;
}

const Target* find(const Architecture& architecture, std::string_view name) {
  for (const Target* each : of(architecture)) {
    if (name == each->name) return each;
  }
  return nullptr;
}

}  // namespace targets

int vector_bits(const Instructions& instructions) {
  return instructions->vector_bits > 0 ? instructions->vector_bits : instructions.scalable_bits;
}

std::string describe(const Instructions& instructions) {
  std::string text = std::string(instructions.architecture->name) + " " + instructions->name;
  if (instructions->vector_bits == 0) text += " of " + std::to_string(instructions.scalable_bits) + " bits";
  if (instructions.rounds_to_bf16) text += ", rounds to bf16";
  if (instructions.multiplies_bf16_pairs) text += ", multiplies pairs of bf16";
  if (instructions.computes_in_f16) text += ", computes in f16";
  if (instructions.multiplies_bytes) text += ", multiplies bytes";
  return text;
}

}  // namespace lamina::cpu
