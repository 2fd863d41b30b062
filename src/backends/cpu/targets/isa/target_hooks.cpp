#include "backends/cpu/targets/isa/target_hooks.h"

#include <numeric>

namespace lamina::cpu {

std::string triple_of(const Architecture& architecture) {
  return &architecture == &host_architecture() ? llvm::sys::getProcessTriple() : architecture.triple_elsewhere;
}

Halves halves_of(llvm::IRBuilder<>& b, llvm::Value* vector) {
  const size_t width = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements() / 2;
  llvm::SmallVector<int, 16> low(width), high(width);
  std::iota(low.begin(), low.end(), 0);
  std::iota(high.begin(), high.end(), static_cast<int>(width));
  llvm::Value* const first = b.CreateShuffleVector(vector, low);
  return {first, b.CreateShuffleVector(vector, high)};
}

}  // namespace lamina::cpu
