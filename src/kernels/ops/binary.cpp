// Binary ops with broadcast, BiasAdd and Select. The strides of the args implement the broadcast.
#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

// Two operands of one integer type are computed in that type. Every other mix is computed in the group's float type.
template <typename F>
void binary(OpLowering& op, F formula) {
  const Type type = compute_type(op.input_tensor(0).dtype);
  const bool integers = !is_real(type) && type == compute_type(op.input_tensor(1).dtype);
  op.out(0, integers ? formula(op.in_as_is(0), op.in_as_is(1)) : formula(op.in(0), op.in(1)));
}

template <MapOp comparison>
void compare(OpLowering& op) {
  binary(op, [&](Value a, Value b) { return op.k.map(comparison, a, b); });
}

Value opposite(Value a) { return a.builder->map(MapOp::logical_not, a); }
Value both(Value a, Value b) { return a.builder->map(MapOp::logical_and, a, b); }

}  // namespace

std::vector<Lowering> binary_lowerings() {
  using O = OpLowering;
  return {
      {OpKind::Add, [](O& op) { binary(op, [](Value a, Value b) { return a + b; }); }},
      {OpKind::BiasAdd, [](O& op) { binary(op, [](Value a, Value b) { return a + b; }); }},
      {OpKind::Divide, [](O& op) { binary(op, [](Value a, Value b) { return a / b; }); }},
      {OpKind::Equal, compare<MapOp::equal>},
      {OpKind::Greater, compare<MapOp::greater>},
      {OpKind::GreaterEqual, compare<MapOp::greater_equal>},
      {OpKind::Less, compare<MapOp::less>},
      {OpKind::LessEqual, compare<MapOp::less_equal>},
      {OpKind::LogicalAnd, [](O& op) { op.out(0, both(op.in_as_is(0), op.in_as_is(1))); }},
      {OpKind::LogicalNot, [](O& op) { op.out(0, opposite(op.in_as_is(0))); }},
      {OpKind::LogicalOr, [](O& op) { op.out(0, opposite(both(opposite(op.in_as_is(0)), opposite(op.in_as_is(1))))); }},
      {OpKind::Maximum, [](O& op) { binary(op, [](Value a, Value b) { return max(a, b); }); }},
      {OpKind::Minimum, [](O& op) { binary(op, [](Value a, Value b) { return min(a, b); }); }},
      {OpKind::Multiply, [](O& op) { binary(op, [](Value a, Value b) { return a * b; }); }},
      {OpKind::NotEqual, [](O& op) { binary(op, [&](Value a, Value b) { return opposite(op.k.map(MapOp::equal, a, b)); }); }},
      {OpKind::Select, [](O& op) { op.out(0, op.k.select(op.in_as_is(0), op.in(1), op.in(2))); }},
      {OpKind::SquaredDifference,
       [](O& op) {
         binary(op, [](Value a, Value b) {
           const Value d = a - b;
           return d * d;
         });
       }},
      {OpKind::Subtract, [](O& op) { binary(op, [](Value a, Value b) { return a - b; }); }},
  };
}

}  // namespace lamina::kernel
