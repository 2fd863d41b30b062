// The elementary functions by their names in the kernel IR.
#pragma once

#include <span>
#include <utility>

#include "interface/status.h"
#include "kernels/math/exponential.h"
#include "kernels/math/logarithm.h"
#include "kernels/math/map_op.h"
#include "kernels/math/remainder.h"
#include "kernels/math/rounding.h"
#include "kernels/math/trigonometry.h"

namespace lamina::kernel::math {

constexpr bool has_template(MapOp op) {
  switch (op) {
    case MapOp::power:
#define LAMINA_MAP_OP(...)
#define LAMINA_MAP_FUNCTION(name, ...) case MapOp::name:
#include "kernels/math/map_ops.def"
      return true;
    default: return false;
  }
}

// `parameter`: the exponent of a power.
template <typename L>
Real<L> function_value(MapOp op, double parameter, std::span<const Real<L>> operands) {
  const auto call = [&]<size_t... I>(std::index_sequence<I...>, auto function) { return function(operands[I]...); };
  switch (op) {
    case MapOp::power: return power(operands[0], parameter);
#define LAMINA_MAP_OP(...)
#define LAMINA_MAP_FUNCTION(name, count, cost) \
  case MapOp::name: return call(std::make_index_sequence<count>{}, [](const auto&... x) { return name(x...); });
#include "kernels/math/map_ops.def"
    default: throw Error(Status::runtime_error, "bug in lamina: a map without a template in kernels/math");
  }
}

}  // namespace lamina::kernel::math
