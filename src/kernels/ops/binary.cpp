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

// As binary. Integers of a byte are computed as floats, which hold their sums and products, and wrap around at the end.
template <typename F>
void arithmetic(OpLowering& op, F formula) {
  const DataType dtype = op.output_tensor(0).dtype;
  binary(op, [&](Value a, Value b) { return is_byte_integer(dtype) ? wrapped_to_byte(formula(a, b), dtype) : formula(a, b); });
}

void divide(OpLowering& op) {
  const DataType dtype = op.output_tensor(0).dtype;
  arithmetic(op, [&](Value a, Value b) {
    const Value quotient = a / b;
    return is_byte_integer(dtype)
               ? op.k.select(op.k.map(MapOp::equal, b, op.k.constant(0, b.type())), b, op.k.map(MapOp::trunc, quotient))
               : quotient;
  });
}

// Bits of integers of a byte are those of the same numbers in s32.
template <MapOp function>
void of_bits(OpLowering& op) {
  const DataType dtype = op.output_tensor(0).dtype;
  const Type type = is_byte_integer(dtype) ? Type::s32 : compute_type(dtype);
  const Value made = op.k.map(function, op.k.cast(op.in_as_is(0), type), op.k.cast(op.in_as_is(1), type));
  op.out(0, is_byte_integer(dtype) ? wrapped_to_byte(made, dtype) : made);
}

void select(OpLowering& op) {
  const bool real = is_real(compute_type(op.output_tensor(0).dtype));
  op.out(0,
         real ? op.k.select(op.in_as_is(0), op.in(1), op.in(2)) : op.k.select(op.in_as_is(0), op.in_as_is(1), op.in_as_is(2)));
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
      {OpKind::Add, [](O& op) { arithmetic(op, [](Value a, Value b) { return a + b; }); }},
      {OpKind::BiasAdd, [](O& op) { binary(op, [](Value a, Value b) { return a + b; }); }},
      {OpKind::BitwiseAnd, of_bits<MapOp::bit_and>},
      {OpKind::BitwiseOr, of_bits<MapOp::bit_or>},
      {OpKind::BitwiseXor, of_bits<MapOp::bit_xor>},
      {OpKind::Divide, divide},
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
      {OpKind::Multiply, [](O& op) { arithmetic(op, [](Value a, Value b) { return a * b; }); }},
      {OpKind::NotEqual, [](O& op) { binary(op, [&](Value a, Value b) { return opposite(op.k.map(MapOp::equal, a, b)); }); }},
      {OpKind::Select, select},
      {OpKind::ShiftLeft, of_bits<MapOp::shift_left>},
      {OpKind::ShiftRight, of_bits<MapOp::shift_right>},
      {OpKind::SquaredDifference,
       [](O& op) {
         binary(op, [](Value a, Value b) {
           const Value d = a - b;
           return d * d;
         });
       }},
      {OpKind::Subtract, [](O& op) { arithmetic(op, [](Value a, Value b) { return a - b; }); }},
  };
}

}  // namespace lamina::kernel
