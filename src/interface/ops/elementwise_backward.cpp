// Gradients of the elementwise ops: diff_src[i] = diff_dst[i] * f'(src[i]). Some accept the forward output instead of the
// forward input: their first port is named "src/dst", and attribute use_dst selects which one it is.
#include <algorithm>

#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

// An op's declarations about its data and arithmetic.
struct Facts {
  DomainRule domain;
  std::optional<double> error = std::nullopt;
  bool jumps = false;
};

OpSchema backward(OpKind kind, const std::string& data_port, std::string formula, Facts facts,
                  std::vector<AttributeSpec> attributes) {
  return {.kind = kind,
          .op_class = OpClass::elementwise,
          .formula = std::move(formula),
          .inputs = {within(std::move(facts.domain), port(data_port, "T")), port("diff_dst", "T", "shape of the data")},
          .outputs = {port("diff_src", "T", "shape of the data")},
          .attributes = std::move(attributes),
          .types = {{"T", floats_and_f64()}},
          .check = [data_port](const OpView& view) { require_same_shape(view, data_port, "diff_dst"); },
          .infer_shapes =
              [data_port](const OpView& view) {
                return ShapeMap{{"diff_src", joined_dims(view.shape(data_port), view.shape("diff_dst"))}};
              },
          .inplace = {{"diff_dst", "diff_src"}},
          .traits = {.jumps = facts.jumps},
          .error = facts.error};
}

// Most functions are clearly nonlinear between -4 and 4.
Facts on_curve(std::optional<double> error, bool jumps = false) { return {always(suits(-4, 4)), error, jumps}; }

// The forward output has its own interval; the forward input is between -4 and 4.
DomainRule result_or_curve(double low, double high) {
  return forward(
      join(low, " to ", high, " with use_dst, else -4 to 4"), [=](const OpView&) { return needs(low, high); },
      [](const OpView&) { return suits(-4, 4); });
}

OpSchema from_src(OpKind kind, std::string formula, Facts facts, std::vector<AttributeSpec> attributes = {}) {
  return backward(kind, "src", std::move(formula), std::move(facts), std::move(attributes));
}

OpSchema from_src_or_dst(OpKind kind, std::string formula, Facts facts, std::vector<AttributeSpec> attributes = {}) {
  attributes.push_back(use_dst());
  return backward(kind, "src/dst", std::move(formula), std::move(facts), std::move(attributes));
}

struct Bounds {
  double low, high;
};

Bounds bounds_of(const OpView& view) { return {std::max(view.number("min"), -1e4), std::min(view.number("max"), 1e4)}; }

// Many values of the forward output are at the bounds; the forward input exceeds both bounds.
DomainRule around_bounds() {
  return forward(
      "from min to max with use_dst, else from below min to above max",
      [](const OpView& view) {
        const auto [low, high] = bounds_of(view);
        return needs(Domain::Form::clamped, low, high);
      },
      [](const OpView& view) {
        const auto [low, high] = bounds_of(view);
        const double margin = 0.5 * (high - low) + 0.5;
        return suits(low - margin, high + margin);
      });
}

DomainRule elu_result() {
  return forward(
      "from above -alpha to 2 with use_dst, else -4 to 4",
      [](const OpView& view) { return needs(std::min(-0.98 * view.number("alpha"), 1.0), 2); },
      [](const OpView&) { return suits(-4, 4); });
}

DomainRule relu_result() {
  return forward(
      "-2 to 2, with use_dst 0 in place of negative numbers",
      [](const OpView&) { return needs(Domain::Form::rectified, -2, 2); }, [](const OpView&) { return suits(-2, 2); });
}

AttributeSpec bound(std::string name) {
  AttributeSpec spec = required_number(std::move(name), "bound of the interval");
  spec.example = spec.name == "min" ? -1.0F : 1.0F;
  spec.check = not_nan;
  return spec;
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(AbsBackward) {
  return from_src(OpKind::AbsBackward, "diff_src = diff_dst * sign(src), 0 where src is 0", on_curve({}, true));
}

LAMINA_SCHEMA(ClampBackward) {
  OpSchema schema = from_src_or_dst(OpKind::ClampBackward, "diff_src = diff_dst where min < src < max, else 0",
                                    {around_bounds(), {}, true}, {bound("min"), bound("max")});
  schema.check = [shapes = schema.check](const OpView& view) {
    const double low = view.number("min");
    const double high = view.number("max");
    if (low > high) view.fail(join("attribute min is ", low, ", allowed is at most max, which is ", high));
    shapes(view);
  };
  return schema;
}

LAMINA_SCHEMA(EluBackward) {
  return from_src_or_dst(
      OpKind::EluBackward,
      "diff_src = diff_dst where src > 0, else diff_dst * alpha * exp(src), which is diff_dst * (dst + alpha)",
      {elu_result(), 1e-6, true}, {required_number("alpha", "scale of the negative side")});
}

LAMINA_SCHEMA(GELUBackward) {
  return from_src(OpKind::GELUBackward, "diff_src = diff_dst * derivative of the chosen form of GELU at src", on_curve(2e-6),
                  {choice("mode", "gelu_erf", {"gelu_erf", "gelu_tanh"}, "form of GELU")});
}

LAMINA_SCHEMA(HardSigmoidBackward) {
  return from_src(OpKind::HardSigmoidBackward, "diff_src = alpha * diff_dst where 0 < alpha * src + beta < 1, else 0",
                  on_curve({}, true), {required_number("alpha", "slope"), required_number("beta", "offset")});
}

LAMINA_SCHEMA(HardSwishBackward) {
  return from_src(OpKind::HardSwishBackward,
                  "diff_src = 0 where src <= -3, diff_dst where src >= 3, else diff_dst * (2 * src + 3) / 6",
                  on_curve(4e-7, true));
}

LAMINA_SCHEMA(MishBackward) {
  return from_src(OpKind::MishBackward, "diff_src = diff_dst * derivative of src * tanh(ln(1 + exp(src)))", on_curve(4e-6));
}

LAMINA_SCHEMA(ReLUBackward) {
  return from_src_or_dst(OpKind::ReLUBackward, "diff_src = diff_dst where src > 0, else 0", {relu_result(), {}, true});
}

LAMINA_SCHEMA(SigmoidBackward) {
  return from_src_or_dst(OpKind::SigmoidBackward, "diff_src = diff_dst * s * (1 - s), s = sigmoid(src) = dst",
                         {result_or_curve(0.01, 0.99), 1e-6});
}

LAMINA_SCHEMA(SoftPlusBackward) {
  AttributeSpec beta = required_number("beta", "sharpness");
  beta.required = false;
  beta.default_value = 1.0F;
  return from_src(OpKind::SoftPlusBackward, "diff_src = diff_dst * sigmoid(beta * src)", on_curve(1e-6), {beta});
}

LAMINA_SCHEMA(SqrtBackward) {
  return from_src_or_dst(OpKind::SqrtBackward, "diff_src = diff_dst / (2 * sqrt(src)) = diff_dst / (2 * dst)",
                         {always(needs(0.25, 4)), {}, true});
}

LAMINA_SCHEMA(TanhBackward) {
  return from_src_or_dst(OpKind::TanhBackward, "diff_src = diff_dst * (1 - t^2), t = tanh(src) = dst",
                         {result_or_curve(-0.99, 0.99), 2e-6});
}
