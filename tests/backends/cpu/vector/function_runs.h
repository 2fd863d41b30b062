// Runs an elementary function of the kernel IR over numbers, for a chosen instruction set.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "backends/cpu/vector/math.h"
#include "backends/cpu/vector/vector_jit.h"

namespace lamina::cpu::testing {

using kernel::MapOp;

inline Emit of(MapOp op, double parameter = 0) {
  return [op, parameter](llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target) {
    return emit_function(b, op, std::array{x}, parameter, target);
  };
}
inline Emit pow_by(double beta) { return of(MapOp::power, beta); }
// op(y, x) as a function of y.
inline Emit at(MapOp op, double x) {
  return [op, x](llvm::IRBuilder<>& b, llvm::Value* y, const Instructions& target) {
    return emit_function(b, op, std::array{y, static_cast<llvm::Value*>(llvm::ConstantFP::get(y->getType(), x))}, 0, target);
  };
}
inline Emit atan2_at(double x) { return at(MapOp::atan2, x); }

inline VectorJit& jit_of(const std::string& level) {
  static std::map<std::string, VectorJit> jits;
  return jits.try_emplace(level, level).first->second;
}

template <typename T>
ElementType element() {
  return [](llvm::LLVMContext& c) { return sizeof(T) == 8 ? llvm::Type::getDoubleTy(c) : llvm::Type::getFloatTy(c); };
}

// Applies the function to `values`, padded with zeros to whole vectors.
template <typename T>
std::vector<T> run(const std::string& level, const Emit& emit, std::vector<T> values, int width = 16) {
  const size_t count = values.size();
  values.resize((count + static_cast<size_t>(width) - 1) / static_cast<size_t>(width) * static_cast<size_t>(width));
  std::vector<T> results(values.size());
  jit_of(level).compile(emit, element<T>(), element<T>(), width)(values.data(), results.data(),
                                                                 static_cast<int64_t>(values.size()));
  results.resize(count);
  return results;
}

}  // namespace lamina::cpu::testing
