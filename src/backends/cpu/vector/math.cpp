#include "backends/cpu/vector/math.h"

#include <array>

#include "backends/cpu/vector/lanes.h"
#include "kernels/math/functions.h"

namespace lamina::cpu {

using Real = kernel::math::Real<FloatLanes>;

llvm::Value* emit_function(llvm::IRBuilder<>& b, kernel::MapOp op, std::span<llvm::Value* const> operands, double parameter,
                           const Instructions& target) {
  const FloatLanes lanes(b, operands[0]->getType(), target);
  std::array<Real, 3> values;
  for (size_t i = 0; i < operands.size(); ++i) values[i] = {&lanes, operands[i]};
  return kernel::math::function_value<FloatLanes>(op, parameter, std::span(values).first(operands.size())).value;
}

llvm::Value* emit_exp_of_at_most_zero(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target) {
  const FloatLanes lanes(b, x->getType(), target);
  return kernel::math::exp_of_at_most_zero(Real{&lanes, x}).value;
}

}  // namespace lamina::cpu
