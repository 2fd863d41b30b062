// Binary ops with broadcast, BiasAdd and Select. Broadcasting is in the strides; nothing of it is seen here.
#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

// Two s32 operands stay integers; every other mix is computed in the group's float type.
template <typename F>
void binary(OpLowering& op, F formula) {
  const bool integers = op.input_tensor(0).dtype == DataType::s32 && op.input_tensor(1).dtype == DataType::s32;
  op.out(0, integers ? formula(op.in_as_is(0), op.in_as_is(1)) : formula(op.in(0), op.in(1)));
}

}  // namespace

std::vector<Lowering> binary_lowerings() {
  using O = OpLowering;
  return {
      {OpKind::Add, [](O& op) { binary(op, [](Value a, Value b) { return a + b; }); }},
      {OpKind::BiasAdd, [](O& op) { binary(op, [](Value a, Value b) { return a + b; }); }},
      {OpKind::Divide, [](O& op) { binary(op, [](Value a, Value b) { return a / b; }); }},
      {OpKind::GreaterEqual, [](O& op) { binary(op, [&](Value a, Value b) { return op.k.map(MapOp::greater_equal, a, b); }); }},
      {OpKind::Maximum, [](O& op) { binary(op, [](Value a, Value b) { return max(a, b); }); }},
      {OpKind::Minimum, [](O& op) { binary(op, [](Value a, Value b) { return min(a, b); }); }},
      {OpKind::Multiply, [](O& op) { binary(op, [](Value a, Value b) { return a * b; }); }},
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
