#include "kernels/builder.h"

#include <algorithm>

#include "interface/status.h"

namespace lamina::kernel {

Type Value::type() const { return builder->node(*this).type; }

Builder::Builder(std::string name, Dims extents, int outer_rank, int entry_rank) {
  kernel_.name = std::move(name);
  kernel_.extents = std::move(extents);
  kernel_.outer_rank = outer_rank;
  kernel_.entry_rank = entry_rank;
}

int Builder::add_arg(Arg arg) {
  kernel_.args.push_back(std::move(arg));
  return static_cast<int>(kernel_.args.size()) - 1;
}

// Level and phase follow from the operands. A reduction's result is a row value and is known one pass later (moments: two).
Value Builder::append(Node node) {
  bool per_element = node.per_element;
  int phase = 0;
  for (int k = 0; k < operand_count(node); ++k) {
    const Node& used = kernel_.node(node.operands[static_cast<size_t>(k)]);
    per_element |= used.per_element;
    phase = std::max(phase, used.phase);
  }
  const bool reduces = node.kind == NodeKind::reduce || node.kind == NodeKind::moments;
  node.per_element = per_element && !reduces;
  node.phase = phase + (node.kind == NodeKind::reduce ? 1 : node.kind == NodeKind::moments ? 2 : 0);
  if (const std::string fault = type_fault(kernel_, node); !fault.empty())
    throw Error(Status::runtime_error,
                join("bug in lamina: kernel ", kernel_.name, ": node %", kernel_.nodes.size(), " ", fault));
  kernel_.nodes.push_back(std::move(node));
  return {this, static_cast<NodeIndex>(kernel_.nodes.size()) - 1};
}

bool Builder::varies_inside(int arg) const {
  const Dims& strides = kernel_.arg(arg).strides;
  return std::any_of(strides.begin() + kernel_.outer_rank, strides.end(), [](int64_t stride) { return stride != 0; });
}

Value Builder::load(int arg) {
  const Type type = compute_type(kernel_.arg(arg).dtype);
  return append({.kind = NodeKind::load, .type = type, .arg = arg, .coefficients = {}, .per_element = varies_inside(arg)});
}

Value Builder::load_entry(int arg, Value entry, Value exists, double otherwise) {
  const Type type = compute_type(kernel_.arg(arg).dtype);
  return append({.kind = NodeKind::load_entry,
                 .type = type,
                 .operands = {entry.node, exists.node, -1},
                 .value = otherwise,
                 .arg = arg,
                 .coefficients = {},
                 .per_element = varies_inside(arg)});
}

Value Builder::sum_entries(int arg, int order, Value begin, Value end, double average) {
  return append({.kind = NodeKind::sum_entries,
                 .type = Type::f64,
                 .operands = {begin.node, end.node, -1},
                 .value = average,
                 .arg = arg,
                 .order = order,
                 .coefficients = {},
                 .per_element = varies_inside(arg)});
}

Value Builder::constant(double value, Type type) {
  return append({.kind = NodeKind::constant, .type = type, .value = value, .coefficients = {}});
}

Value Builder::index(Dims coefficients) {
  bool varies = false;
  for (size_t d = static_cast<size_t>(kernel_.outer_rank); d < coefficients.size(); ++d) varies |= coefficients[d] != 0;
  return append({.kind = NodeKind::index, .type = Type::s64, .coefficients = std::move(coefficients), .per_element = varies});
}

Value Builder::map(MapOp op, Value a, Value b, Value c, double value) {
  const Type type = result_of(op, a.type(), b ? b.type() : a.type(), a.type());
  return append({.kind = NodeKind::map,
                 .type = type,
                 .op = op,
                 .operands = {a.node, b.node, c.node},
                 .value = value,
                 .coefficients = {}});
}

Value Builder::cast(Value a, Type type) {
  if (a.type() == type) return a;
  return append({.kind = NodeKind::map, .type = type, .op = MapOp::cast, .operands = {a.node, -1, -1}, .coefficients = {}});
}

Value Builder::cast_to_odd(Value a) {
  return append(
      {.kind = NodeKind::map, .type = Type::f64, .op = MapOp::cast_to_odd, .operands = {a.node, -1, -1}, .coefficients = {}});
}

Value Builder::round_to(Value a, DataType dtype) {
  return append({.kind = NodeKind::map,
                 .type = a.type(),
                 .op = MapOp::round_to,
                 .operands = {a.node, -1, -1},
                 .dtype = dtype,
                 .coefficients = {}});
}

Value Builder::select(Value condition, Value then, Value otherwise) { return map(MapOp::select, condition, then, otherwise); }

Value Builder::reduce(Reduction reduction, Value a) {
  return append(
      {.kind = NodeKind::reduce, .type = a.type(), .reduction = reduction, .operands = {a.node, -1, -1}, .coefficients = {}});
}

Builder::Moments Builder::moments(Value a) {
  const Type type = a.type();
  const Value both = append({.kind = NodeKind::moments, .type = type, .operands = {a.node, -1, -1}, .coefficients = {}});
  const Value mean = append({.kind = NodeKind::mean, .type = type, .operands = {both.node, -1, -1}, .coefficients = {}});
  const Value variance =
      append({.kind = NodeKind::variance, .type = type, .operands = {both.node, -1, -1}, .coefficients = {}});
  return {both, mean, variance};
}

Value Builder::center(Value a, const Moments& moments, Value scale) {
  return append(
      {.kind = NodeKind::center, .type = a.type(), .operands = {a.node, moments.moments.node, scale.node}, .coefficients = {}});
}

// A store rounds as round_to does. A value that was rounded only for this type is therefore stored without the round_to.
void Builder::store(Value a, int arg) {
  const Node& rounded = node(a);
  const bool twice = rounded.kind == NodeKind::map && rounded.op == MapOp::round_to && rounded.dtype == kernel_.arg(arg).dtype;
  if (twice) a.node = rounded.operands[0];
  append({.kind = NodeKind::store,
          .type = a.type(),
          .operands = {a.node, -1, -1},
          .arg = arg,
          .coefficients = {},
          .per_element = varies_inside(arg)});
}

void Builder::column_sum(Value a, int arg) {
  kernel_.args[static_cast<size_t>(arg)].column = true;
  append({.kind = NodeKind::column_sum, .type = a.type(), .operands = {a.node, -1, -1}, .arg = arg, .coefficients = {}});
}

void Builder::segment_sum(Value a, int arg) {
  append({.kind = NodeKind::segment_sum, .type = a.type(), .operands = {a.node, -1, -1}, .arg = arg, .coefficients = {}});
}

Kernel Builder::finish() {
  // Mark what a store or a sum in memory needs, walking from the end. Then renumber.
  std::vector<bool> used(kernel_.nodes.size(), false);
  for (size_t i = kernel_.nodes.size(); i-- > 0;) {
    const Node& node = kernel_.nodes[i];
    if (writes_arg(node)) used[i] = true;
    for (int k = 0; used[i] && k < operand_count(node); ++k)
      used[static_cast<size_t>(node.operands[static_cast<size_t>(k)])] = true;
  }
  std::vector<NodeIndex> renumbered(kernel_.nodes.size(), -1);
  std::vector<Node> kept;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (!used[i]) continue;
    Node node = kernel_.nodes[i];
    for (NodeIndex& operand : node.operands) operand = operand < 0 ? -1 : renumbered[static_cast<size_t>(operand)];
    renumbered[i] = static_cast<NodeIndex>(kept.size());
    kept.push_back(std::move(node));
  }
  kernel_.nodes = std::move(kept);
  verify(kernel_);
  return std::move(kernel_);
}

namespace {

Value constant_like(Value other, double value) { return other.builder->constant(value, other.type()); }
Value binary(MapOp op, Value a, Value b) { return a.builder->map(op, a, b); }

}  // namespace

Value operator+(Value a, Value b) { return binary(MapOp::add, a, b); }
Value operator-(Value a, Value b) { return binary(MapOp::subtract, a, b); }
Value operator*(Value a, Value b) { return binary(MapOp::multiply, a, b); }
Value operator/(Value a, Value b) { return binary(MapOp::divide, a, b); }
Value operator-(Value a) { return a.builder->map(MapOp::negate, a); }
Value operator+(Value a, double b) { return a + constant_like(a, b); }
Value operator-(Value a, double b) { return a - constant_like(a, b); }
Value operator*(Value a, double b) { return a * constant_like(a, b); }
Value operator/(Value a, double b) { return a / constant_like(a, b); }
Value operator+(double a, Value b) { return constant_like(b, a) + b; }
Value operator-(double a, Value b) { return constant_like(b, a) - b; }
Value operator*(double a, Value b) { return constant_like(b, a) * b; }
Value operator/(double a, Value b) { return constant_like(b, a) / b; }
Value exp(Value a) { return a.builder->map(MapOp::exp, a); }
Value sqrt(Value a) { return a.builder->map(MapOp::square_root, a); }
Value abs(Value a) { return a.builder->map(MapOp::absolute, a); }
Value max(Value a, Value b) { return binary(MapOp::maximum, a, b); }
Value max(Value a, double b) { return max(a, constant_like(a, b)); }
Value min(Value a, Value b) { return binary(MapOp::minimum, a, b); }
Value min(Value a, double b) { return min(a, constant_like(a, b)); }
Value fma(Value a, Value b, Value c) { return a.builder->map(MapOp::fma, a, b, c); }
Value greater(Value a, double b) { return binary(MapOp::greater, a, constant_like(a, b)); }
Value greater_equal(Value a, double b) { return binary(MapOp::greater_equal, a, constant_like(a, b)); }
Value less(Value a, double b) { return binary(MapOp::less, a, constant_like(a, b)); }
Value less_equal(Value a, double b) { return binary(MapOp::less_equal, a, constant_like(a, b)); }
Value select(Value condition, Value then, double otherwise) {
  return then.builder->select(condition, then, constant_like(then, otherwise));
}

// Numbers from -2^(bits - 1), or 0, in steps of 2^bits.
Value wrapped_to_byte(Value a, DataType dtype) {
  Builder& k = *a.builder;
  const double low = is_signed_integer(dtype) ? -128 : 0;
  if (!is_real(a.type())) a = k.cast(k.map(MapOp::bit_and, a, k.constant(255, a.type())), Type::f32);
  return a - k.map(MapOp::floor, (a - low) * 0x1p-8) * 256.0;
}

}  // namespace lamina::kernel
