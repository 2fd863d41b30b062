// Ops that map each element of one tensor: dst[i] = f(src[i]).
#include <algorithm>

#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

// An op's declarations about its data and arithmetic. Most functions are clearly nonlinear between -4 and 4.
struct Facts {
  std::optional<DomainRule> domain = always(suits(-4, 4));
  std::optional<double> error = std::nullopt;
  bool jumps = false;
};

OpSchema unary(OpKind kind, std::string formula, Facts facts, std::vector<AttributeSpec> attributes = {}) {
  return {.kind = kind,
          .op_class = OpClass::elementwise,
          .formula = std::move(formula),
          .inputs = {{.name = "src", .type = "T", .domain = std::move(facts.domain)}},
          .outputs = {port("dst", "T", "shape of src")},
          .attributes = std::move(attributes),
          .types = {{"T", floats_and_f64()}},
          .infer_shapes = [](const OpView& view) { return outputs_like(view, "src", {"dst"}); },
          .inplace = {{"src", "dst"}},
          .traits = {.jumps = facts.jumps},
          .error = facts.error};
}

Domain positive() { return needs(0.25, 4); }

// The data reach both bounds and exceed them.
std::optional<Domain> around_bounds(const OpView& view, const LogicalTensor&) {
  const double low = std::max(view.number("min"), -1e4);
  const double high = std::min(view.number("max"), 1e4);
  const double margin = 0.5 * (high - low) + 0.5;
  return suits(low - margin, high + margin);
}

std::string finite_and_not_zero(const Attribute& value) {
  return finite(value).empty() && *number_of(value) != 0 ? "" : "a finite number other than 0";
}

AttributeSpec bound(std::string name) {
  AttributeSpec spec = required_number(std::move(name), "bound of the interval");
  spec.example = spec.name == "min" ? -1.0F : 1.0F;
  spec.check = not_nan;
  return spec;
}

void check_bounds(const OpView& view) {
  const double low = view.number("min");
  const double high = view.number("max");
  if (low > high) view.fail(join("attribute min is ", low, ", allowed is at most max, which is ", high));
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(Abs) { return unary(OpKind::Abs, "dst = |src|", {.error = 0}); }

LAMINA_SCHEMA(Clamp) {
  OpSchema schema =
      unary(OpKind::Clamp, "dst = min(max(src, min), max)",
            {.domain = DomainRule{"from below min to above max", around_bounds}, .error = 0}, {bound("min"), bound("max")});
  schema.check = check_bounds;
  return schema;
}

LAMINA_SCHEMA(Elu) {
  return unary(OpKind::Elu, "dst = src where src > 0, else alpha * (exp(src) - 1)", {.error = 1e-6},
               {required_number("alpha", "scale of the negative side")});
}

LAMINA_SCHEMA(Exp) { return unary(OpKind::Exp, "dst = exp(src)", {.error = 6e-7}); }

LAMINA_SCHEMA(Expm1) { return unary(OpKind::Expm1, "dst = exp(src) - 1, accurate near 0", {.error = 6e-7}); }

LAMINA_SCHEMA(Erfc) {
  return unary(OpKind::Erfc,
               "dst = 1 - erf(src), accurate where it is small: 2 / sqrt(pi) * integral of exp(-t^2) from src to infinity",
               {.error = 6e-7});
}

LAMINA_SCHEMA(GELU) {
  return unary(OpKind::GELU,
               "gelu_erf: dst = src / 2 * (1 + erf(src / sqrt(2))); "
               "gelu_tanh: dst = src / 2 * (1 + tanh(sqrt(2 / pi) * (src + 0.044715 * src^3)))",
               {.error = 1e-6}, {choice("mode", "gelu_erf", {"gelu_erf", "gelu_tanh"}, "form of GELU")});
}

LAMINA_SCHEMA(HardSigmoid) {
  return unary(OpKind::HardSigmoid, "dst = clamp(alpha * src + beta, 0, 1)", {},
               {required_number("alpha", "slope"), required_number("beta", "offset")});
}

LAMINA_SCHEMA(HardSwish) { return unary(OpKind::HardSwish, "dst = src * clamp(src + 3, 0, 6) / 6", {}); }

LAMINA_SCHEMA(LeakyReLU) {
  return unary(OpKind::LeakyReLU, "dst = src where src >= 0, else alpha * src", {},
               {required_number("alpha", "slope of the negative side")});
}

LAMINA_SCHEMA(Log) { return unary(OpKind::Log, "dst = ln(src)", {always(positive()), 6e-7, true}); }

LAMINA_SCHEMA(Log1p) {
  return unary(OpKind::Log1p, "dst = ln(1 + src), accurate near 0", {always(needs(-0.5, 4)), 6e-7, true});
}

LAMINA_SCHEMA(Mish) { return unary(OpKind::Mish, "dst = src * tanh(ln(1 + exp(src)))", {.error = 2e-6}); }

LAMINA_SCHEMA(Pow) {
  OpSchema schema =
      unary(OpKind::Pow, "dst = src^beta", {always(needs(0.25, 2)), 2e-6, true}, {required_number("beta", "exponent")});
  schema.inplace = {};
  return schema;
}

LAMINA_SCHEMA(Reciprocal) {
  return unary(OpKind::Reciprocal, "dst = 1 / src", {.domain = always(needs(Domain::Form::off_zero, 0.25, 4)), .jumps = true});
}

LAMINA_SCHEMA(ReLU) { return unary(OpKind::ReLU, "dst = max(src, 0)", {.error = 0}); }

LAMINA_SCHEMA(Round) {
  return unary(OpKind::Round, "dst = nearest integer to src, halves to even", {.error = 0, .jumps = true});
}

LAMINA_SCHEMA(Sigmoid) { return unary(OpKind::Sigmoid, "dst = 1 / (1 + exp(-src))", {.error = 6e-7}); }

LAMINA_SCHEMA(Sign) {
  return unary(OpKind::Sign, "dst = 1 where src > 0, -1 where src < 0, else 0 (also for NaN)", {.error = 0, .jumps = true});
}

LAMINA_SCHEMA(Trunc) { return unary(OpKind::Trunc, "dst = src without its fraction", {.error = 0, .jumps = true}); }

LAMINA_SCHEMA(Sin) { return unary(OpKind::Sin, "dst = sin(src), src in radians of any size", {}); }

LAMINA_SCHEMA(Cos) { return unary(OpKind::Cos, "dst = cos(src), src in radians of any size", {}); }

LAMINA_SCHEMA(SoftPlus) {
  AttributeSpec beta = required_number("beta", "sharpness");
  beta.required = false;
  beta.default_value = 1.0F;
  beta.check = finite_and_not_zero;
  return unary(OpKind::SoftPlus, "dst = ln(1 + exp(beta * src)) / beta", {.error = 1e-6}, {beta});
}

LAMINA_SCHEMA(Sqrt) { return unary(OpKind::Sqrt, "dst = sqrt(src)", {.domain = always(positive()), .jumps = true}); }

LAMINA_SCHEMA(Square) { return unary(OpKind::Square, "dst = src^2", {.domain = std::nullopt}); }

LAMINA_SCHEMA(Swish) {
  AttributeSpec alpha = required_number("alpha", "slope inside the logistic function");
  alpha.required = false;
  alpha.default_value = 1.0F;
  return unary(OpKind::Swish, "dst = src / (1 + exp(-alpha * src))", {.error = 1e-6}, {alpha});
}

LAMINA_SCHEMA(Tanh) { return unary(OpKind::Tanh, "dst = tanh(src)", {.error = 1e-6}); }
