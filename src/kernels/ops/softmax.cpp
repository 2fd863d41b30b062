// SoftMax, LogSoftmax and their gradients along one axis. The row's maximum is subtracted first.
#include <limits>

#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

// e / total for e from 0 to 1 and a total that is the row's, from 1 to its length. The inverse of the total is computed once,
// as the sum of two numbers, so that an element needs no division. The result is the correctly rounded quotient, unless the
// quotient is within 2^-22 units of the midpoint between two numbers, or subnormal.
Value divide_by_total(Value e, Value total) {
  const Value one = total.builder->constant(1, total.type());
  const Value inverse = one / total;
  const Value rest = fma(-inverse, total, one) * inverse;
  return fma(e, inverse, e * rest);
}

// With mode inf_as_zero, a row of only -inf gets zeros, also as its statistic. Plain arithmetic would give NaN.
void softmax(OpLowering& op) {
  const Value x = op.in(0);
  const bool inf_as_zero = op.attribute<std::string>("mode") == "inf_as_zero";
  const double lowest = -std::numeric_limits<double>::infinity();
  const Value maximum = op.k.reduce(Reduction::maximum, x);
  // `!(maximum <= lowest)` instead of `maximum > lowest`, because NaN must stay NaN.
  const auto unless_all_inf = [&](Value value, double otherwise) {
    return inf_as_zero ? op.k.select(less_equal(maximum, lowest), op.k.constant(otherwise, value.type()), value) : value;
  };
  const Value e = exp(x - unless_all_inf(maximum, 0));
  const Value total = op.k.reduce(Reduction::sum, e);
  op.out(0, divide_by_total(e, unless_all_inf(total, 1)));
  if (op.wants("stats")) op.out("stats", unless_all_inf(maximum + op.k.map(MapOp::log, total), 0));
}

void log_softmax(OpLowering& op) {
  const Value x = op.in(0);
  const Value shifted = x - op.k.reduce(Reduction::maximum, x);
  op.out(0, shifted - op.k.map(MapOp::log, op.k.reduce(Reduction::sum, exp(shifted))));
}

void softmax_backward(OpLowering& op) {
  const Value diff_dst = op.in(0);
  const Value dst = op.in(1);
  op.out(0, dst * (diff_dst - op.k.reduce(Reduction::sum, diff_dst * dst)));
}

void log_softmax_backward(OpLowering& op) {
  const Value diff_dst = op.in(0);
  op.out(0, diff_dst - exp(op.in(1)) * op.k.reduce(Reduction::sum, diff_dst));
}

}  // namespace

std::vector<Lowering> softmax_lowerings() {
  return {{OpKind::SoftMax, softmax},
          {OpKind::LogSoftmax, log_softmax},
          {OpKind::SoftMaxBackward, softmax_backward},
          {OpKind::LogSoftmaxBackward, log_softmax_backward}};
}

}  // namespace lamina::kernel
