// Dropout with a counter-based generator: u = philox(element index, seed, offset); kept where u > p, scaled by 1 / (1 - p).
#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

void dropout(OpLowering& op) {
  const Value seed = op.in_as_is(1);
  const Value offset = op.in_as_is(2);
  const Value probability = op.k.cast(op.in_as_is(3), Type::f32);
  const Value uniform = op.k.map(MapOp::philox_uniform, op.linear_index(), seed, offset);
  const Value kept = op.k.map(MapOp::greater, uniform, probability);
  const Value x = op.in(0);
  // p = 1 keeps nothing; the scale must not become infinite then.
  const Value scale = select(less(probability, 1), 1.0 / (1.0 - probability), 0);
  op.out(0, select(kept, x * op.k.cast(scale, x.type()), 0));
  if (op.wants("mask")) op.out("mask", op.k.cast(kept, Type::f32));
}

}  // namespace

std::vector<Lowering> dropout_lowerings() { return {{OpKind::Dropout, dropout}}; }

}  // namespace lamina::kernel
