// Gradients of the unary elementwise ops. Input 0 is src, or dst if use_dst is true; input 1 is diff_dst.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

Value sigmoid(Value x) { return x.builder->map(MapOp::sigmoid, x); }

bool uses_dst(const OpLowering& op) { return op.attribute<bool>("use_dst"); }

// d/dx of x * cdf(x) is cdf(x) + x * pdf(x).
Value gelu_erf_slope(Value x) {
  const double one_over_root_two_pi = 1 / std::sqrt(2 * std::numbers::pi);
  return x.builder->map(MapOp::normal_cdf, x) + x * (exp(x * x * -0.5) * one_over_root_two_pi);
}

// With s = sigmoid(v(x)): d/dx of x * s is s + x * s * (1 - s) * v'(x), v = 2 sqrt(2/pi) (x + 0.044715 x^3). The slope is 0 or
// 1 long before |x| reaches 1000; beyond 1e19 the square would overflow.
Value gelu_tanh_slope(Value src) {
  const Value x = min(max(src, -1000.0), 1000.0);
  const double twice_root = 2 * std::sqrt(2 / std::numbers::pi);
  const Value square = x * x;
  const Value v = x * (square * (0.044715 * twice_root) + twice_root);
  const Value slope_of_v = square * (3 * 0.044715 * twice_root) + twice_root;
  const Value s = sigmoid(v);
  return s + x * s * sigmoid(-v) * slope_of_v;
}

void gelu_backward(OpLowering& op) {
  const Value x = op.in(0);
  const bool tanh_form = op.attribute<std::string>("mode") == "gelu_tanh";
  op.out(0, op.in(1) * (tanh_form ? gelu_tanh_slope(x) : gelu_erf_slope(x)));
}

// With e = e^x and n = e (e + 2): mish' = n / (n + 2) + x * 4 e (1 + e) / (n + 2)^2. Beyond x = 20 it is 1.
void mish_backward(OpLowering& op) {
  const Value x = op.in(0);
  const Value clipped = min(x, 20.0);
  const Value e = exp(clipped);
  const Value n = e * (e + 2.0);
  const Value m = n + 2.0;
  op.out(0, op.in(1) * (n / m + clipped * (e * (e + 1.0) / m * 4.0 / m)));
}

void elu_backward(OpLowering& op) {
  const Value x = op.in(0);
  const Value dy = op.in(1);
  const double alpha = op.number("alpha");
  const Value negative_side = uses_dst(op) ? x + alpha : exp(x) * alpha;
  op.out(0, op.k.select(greater(x, 0), dy, dy * negative_side));
}

void abs_backward(OpLowering& op) {
  const Value x = op.in(0);
  const Value dy = op.in(1);
  op.out(0, op.k.select(greater(x, 0), dy, select(less(x, 0), -dy, 0)));
}

// dy if lower < x < upper, else 0. The condition is the same for the op's input and its output.
Value pass_between(Value x, double lower, double upper, Value dy) {
  return select(greater(x, lower), select(less(x, upper), dy, 0), 0);
}

// The nearest number of `type` that is not below `number`, or, downwards, not above it.
double rounded_outwards(double number, Type type, double direction) {
  const auto nearest = static_cast<float>(number);
  if (type != Type::f32 || std::isnan(number) || (static_cast<double>(nearest) - number) * direction >= 0)
    return type == Type::f32 ? static_cast<double>(nearest) : number;
  return static_cast<double>(std::nextafter(nearest, static_cast<float>(direction) * std::numeric_limits<float>::infinity()));
}

// alpha * x + beta is between 0 and 1 where x is between the places at which it is 0 and 1. x itself is compared with these:
// the sum would be rounded first.
void hard_sigmoid_backward(OpLowering& op) {
  const double alpha = op.number("alpha"), beta = op.number("beta"), zero_at = -beta / alpha, one_at = (1 - beta) / alpha;
  const Type type = op.float_type();
  op.out(0, pass_between(op.in(0), rounded_outwards(std::min(zero_at, one_at), type, -1),
                         rounded_outwards(std::max(zero_at, one_at), type, 1), op.in(1) * alpha));
}

void hard_swish_backward(OpLowering& op) {
  const Value x = op.in(0);
  const Value dy = op.in(1);
  const Value middle = dy * ((x * 2.0 + 3.0) / 6.0);
  op.out(0, op.k.select(greater_equal(x, 3), dy, select(greater(x, -3), middle, 0)));
}

// 1 - tanh², computed from src as 4 e / (1 + e)² with e = exp(-2 |x|), which does not cancel where tanh is close to 1.
void tanh_backward(OpLowering& op) {
  const Value x = op.in(0);
  const Value dy = op.in(1);
  if (uses_dst(op)) return op.out(0, dy * ((1.0 - x) * (x + 1.0)));
  const Value e = exp(abs(x) * -2.0);
  const Value whole = e + 1.0;
  op.out(0, dy * (e * 4.0 / (whole * whole)));
}

// The gradient of a slope entry is the sum over all elements that share the entry and whose src is negative.
void prelu_backward(OpLowering& op) {
  const Value x = op.in("src");
  const Value dy = op.in("diff_dst");
  const Value passes = greater_equal(x, 0);
  if (op.wants("diff_src")) op.out("diff_src", op.k.select(passes, dy, op.in("slope") * dy));
  if (op.wants("diff_slope")) op.out_column("diff_slope", op.k.select(passes, op.k.constant(0, op.float_type()), dy * x));
}

}  // namespace

std::vector<Lowering> elementwise_backward_lowerings() {
  using O = OpLowering;
  return {
      {OpKind::AbsBackward, abs_backward},
      {OpKind::ClampBackward, [](O& op) { op.out(0, pass_between(op.in(0), op.number("min"), op.number("max"), op.in(1))); }},
      {OpKind::EluBackward, elu_backward},
      {OpKind::GELUBackward, gelu_backward},
      {OpKind::HardSigmoidBackward, hard_sigmoid_backward},
      {OpKind::HardSwishBackward, hard_swish_backward},
      {OpKind::MishBackward, mish_backward},
      {OpKind::PReLUBackward, prelu_backward},
      {OpKind::ReLUBackward, [](O& op) { op.out(0, select(greater(op.in(0), 0), op.in(1), 0)); }},
      {OpKind::SigmoidBackward,
       [](O& op) {
         const Value s = uses_dst(op) ? op.in(0) : sigmoid(op.in(0));
         const Value rest = uses_dst(op) ? 1.0 - s : sigmoid(-op.in(0));
         op.out(0, op.in(1) * s * rest);
       }},
      {OpKind::SoftPlusBackward, [](O& op) { op.out(0, op.in(1) * sigmoid(op.in(0) * op.number("beta"))); }},
      {OpKind::SqrtBackward,
       [](O& op) {
         const Value root = uses_dst(op) ? op.in(0) : sqrt(op.in(0));
         op.out(0, op.in(1) / (root * 2.0));
       }},
      {OpKind::TanhBackward, tanh_backward},
  };
}

}  // namespace lamina::kernel
