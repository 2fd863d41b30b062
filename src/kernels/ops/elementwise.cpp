// Unary elementwise ops in forms without cancellation: GELU through the normal distribution function or the logistic
// function, not 1 + erf or 1 + tanh; Mish as a ratio of polynomials in e^x; SoftPlus around max(x, 0).
#include <cmath>
#include <numbers>

#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

Value unary(MapOp op, Value x) { return x.builder->map(op, x); }

// Twice the argument of tanh in GELU's tanh form, because tanh(u) is replaced by sigmoid(2u).
Value gelu_tanh_argument(Value x) {
  const double twice_root = 2 * std::sqrt(2 / std::numbers::pi);
  return x * (x * x * (0.044715 * twice_root) + twice_root);
}

void gelu(OpLowering& op) {
  const Value x = op.in(0);
  const bool tanh_form = op.attribute<std::string>("mode") == "gelu_tanh";
  op.out(0, tanh_form ? x * unary(MapOp::sigmoid, gelu_tanh_argument(x)) : unary(MapOp::gelu, x));
}

// tanh(ln(1 + e)) = n / (n + 2) with n = e (e + 2). Beyond x = 20 the ratio is 1, and a larger x would overflow e.
void mish(OpLowering& op) {
  const Value x = op.in(0);
  const Value e = exp(min(x, 20.0));
  const Value n = e * (e + 2.0);
  op.out(0, x * (n / (n + 2.0)));
}

// beta * src may overflow, so a positive one is not divided by beta again.
void soft_plus(OpLowering& op) {
  const double beta = op.number("beta");
  const Value x = op.in(0), scaled = x * beta;
  op.out(0, select(greater(scaled, 0), x, 0) + unary(MapOp::log1p, exp(-abs(scaled))) / beta);
}

void prelu(OpLowering& op) {
  const Value x = op.in(0);
  op.out(0, op.k.select(greater_equal(x, 0), x, x * op.in(1)));
}

}  // namespace

std::vector<Lowering> elementwise_lowerings() {
  using O = OpLowering;
  return {
  // The ops that are one function of the kernel IR.
#define LAMINA_MAP_OP(...)
#define LAMINA_OP_FUNCTION(kind, name, operands, cost) \
  {OpKind::kind, [](O& op) { op.out(0, op.k.map(MapOp::name, op.in(0), operands > 1 ? op.in(1) : Value{})); }},
#include "kernels/math/map_ops.def"

      {OpKind::Abs, [](O& op) { op.out(0, abs(op.in(0))); }},
      {OpKind::Clamp, [](O& op) { op.out(0, min(max(op.in(0), op.number("min")), op.number("max"))); }},
      {OpKind::Elu,
       [](O& op) {
         const Value x = op.in(0);
         op.out(0, op.k.select(greater(x, 0), x, unary(MapOp::expm1, x) * op.number("alpha")));
       }},
      {OpKind::GELU, gelu},
      {OpKind::HardSigmoid, [](O& op) { op.out(0, min(max(op.in(0) * op.number("alpha") + op.number("beta"), 0.0), 1.0)); }},
      {OpKind::HardSwish,
       [](O& op) {
         const Value x = op.in(0);
         op.out(0, x * (min(max(x + 3.0, 0.0), 6.0) / 6.0));
       }},
      {OpKind::LeakyReLU,
       [](O& op) {
         const Value x = op.in(0);
         op.out(0, op.k.select(greater_equal(x, 0), x, x * op.number("alpha")));
       }},
      {OpKind::Mish, mish},
      {OpKind::Pow, [](O& op) { op.out(0, op.k.map(MapOp::power, op.in(0), {}, {}, op.number("beta"))); }},
      {OpKind::PReLU, prelu},
      {OpKind::Reciprocal, [](O& op) { op.out(0, 1.0 / op.in(0)); }},
      {OpKind::ReLU, [](O& op) { op.out(0, max(op.in(0), 0.0)); }},
      {OpKind::SoftPlus, soft_plus},
      {OpKind::Sqrt, [](O& op) { op.out(0, sqrt(op.in(0))); }},
      {OpKind::Square,
       [](O& op) {
         const Value x = op.in(0);
         op.out(0, x * x);
       }},
      {OpKind::Swish,
       [](O& op) {
         const Value x = op.in(0);
         op.out(0, x * unary(MapOp::sigmoid, x * op.number("alpha")));
       }},
  };
}

}  // namespace lamina::kernel
