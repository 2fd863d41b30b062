// Dropout with a counter-based generator. An element is kept, and multiplied by 1 / (1 - p), if its 32-bit word
// philox(element index, seed, offset) exceeds floor((2^32 - 1) * p).
#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

constexpr int kFirst = 4;  // port number

// The position of an element in its tensor. For a part of a tensor: in the whole tensor.
Value position(OpLowering& op) {
  if (!op.has("first")) return op.linear_index();
  return op.k.map(MapOp::add, op.index_by(op.attribute<std::vector<int64_t>>("steps")), op.in_as_is(kFirst));
}

void dropout(OpLowering& op) {
  const Value seed = op.in_as_is(1);
  const Value offset = op.in_as_is(2);
  const Value probability = op.k.cast(op.in_as_is(3), Type::f64);
  const Value threshold = op.k.cast(op.k.map(MapOp::floor, min(max(probability, 0.0), 1.0) * 4294967295.0), Type::s64);
  const Value kept = op.k.map(MapOp::greater, op.k.map(MapOp::philox_word, position(op), seed, offset), threshold);
  const Value x = op.in(0);
  // p = 1 keeps nothing. The scale must not become infinite in that case.
  const Value scale = select(less(probability, 1), 1.0 / (1.0 - probability), 0);
  op.out(0, select(kept, x * op.k.cast(scale, x.type()), 0));
  if (op.wants("mask")) op.out("mask", op.k.cast(kept, Type::f32));
}

}  // namespace

std::vector<Lowering> dropout_lowerings() { return {{OpKind::Dropout, dropout}}; }

}  // namespace lamina::kernel
