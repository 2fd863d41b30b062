#include "kernels/bytes_of_numbers.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lamina::kernel {

namespace {

const Node& node_of(const Kernel& kernel, NodeIndex index) { return kernel.nodes[static_cast<size_t>(index)]; }

bool is_map(const Node& n, MapOp op) { return n.kind == NodeKind::map && n.op == op; }
bool is_constant(const Node& n, double value) { return n.kind == NodeKind::constant && n.value == value; }

// Products keep a number a number: it may be infinite.
bool is_finite_factor(const Node& n) { return n.kind == NodeKind::constant && std::isfinite(n.value) && n.value != 0; }

bool makes_integer(const Kernel& kernel, const Node& n) {
  return (n.kind == NodeKind::store && is_integer(kernel.arg(n.arg).dtype)) ||
         (is_map(n, MapOp::round_to) && is_integer(n.dtype));
}

// If those of `zeros` are 0 or NaN, then so is the node.
bool is_zero_or_nan(const Node& n, const std::vector<bool>& zeros) {
  const auto is_zero = [&](size_t k) { return zeros[static_cast<size_t>(n.operands[k])]; };
  if (is_map(n, MapOp::multiply)) return is_zero(0) || is_zero(1);
  return is_map(n, MapOp::fma) && (is_zero(0) || is_zero(1)) && is_zero(2);
}

}  // namespace

bool may_clear_nan(const Kernel& kernel, NodeIndex index) {
  const Node& maximum = node_of(kernel, index);
  if (!is_map(maximum, MapOp::maximum) || !is_constant(node_of(kernel, maximum.operands[1]), 0) || maximum.type != Type::f32)
    return false;
  std::vector<bool> zeros(kernel.nodes.size(), false);
  zeros[static_cast<size_t>(index)] = true;
  for (size_t i = static_cast<size_t>(index) + 1; i < kernel.nodes.size(); ++i) {
    const Node& n = kernel.nodes[i];
    const bool reads = std::any_of(n.operands.begin(), n.operands.end(),
                                   [&](NodeIndex operand) { return operand >= 0 && zeros[static_cast<size_t>(operand)]; });
    if (!reads || makes_integer(kernel, n)) continue;
    if (!is_zero_or_nan(n, zeros)) return false;
    zeros[i] = true;
  }
  return true;
}

NumberRange range_of(const Kernel& kernel, NodeIndex index) {
  const Node& n = node_of(kernel, index);
  const auto operand = [&](size_t k) -> const Node& { return node_of(kernel, n.operands[k]); };
  const auto times = [&](const Node& factor) {
    const NumberRange range = range_of(kernel, n.operands[0]);
    return range == NumberRange::nonnegative && factor.value < 0 ? NumberRange::numbers : range;
  };
  if (is_map(n, MapOp::multiply)) return is_finite_factor(operand(1)) ? times(operand(1)) : NumberRange::any;
  if (is_map(n, MapOp::fma)) {  // x * high + x * low, where both are infinite with one sign
    const Node &high = operand(1), &product = operand(2);
    if (!is_map(product, MapOp::multiply) || product.operands[0] != n.operands[0]) return NumberRange::any;
    const Node& low = node_of(kernel, product.operands[1]);
    const bool has_one_sign = is_finite_factor(high) && is_finite_factor(low) && (high.value < 0) == (low.value < 0);
    return has_one_sign ? times(high) : NumberRange::any;
  }
  return may_clear_nan(kernel, index) ? NumberRange::nonnegative : NumberRange::any;
}

}  // namespace lamina::kernel
