// Gradients of the elementwise ops: diff_src[i] = diff_dst[i] * f'(src[i]). Some take the forward output instead of its input:
// their first port is named "src/dst" and attribute use_dst says which it holds.
#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

OpSchema backward(OpKind kind, const std::string& data_port, std::string formula, std::vector<AttributeSpec> attributes = {}) {
  return {.kind = kind,
          .op_class = OpClass::elementwise,
          .formula = std::move(formula),
          .inputs = {port(data_port, "T"), port("diff_dst", "T", "shape of the data")},
          .outputs = {port("diff_src", "T", "shape of the data")},
          .attributes = std::move(attributes),
          .types = {{"T", floats_and_f64()}},
          .check = [data_port](const OpView& view) { require_same_shape(view, data_port, "diff_dst"); },
          .infer_shapes =
              [data_port](const OpView& view) {
                return ShapeMap{{"diff_src", joined_dims(view.shape(data_port), view.shape("diff_dst"))}};
              },
          .inplace = {{"diff_dst", "diff_src"}}};
}

OpSchema from_src(OpKind kind, std::string formula, std::vector<AttributeSpec> attributes = {}) {
  return backward(kind, "src", std::move(formula), std::move(attributes));
}

OpSchema from_src_or_dst(OpKind kind, std::string formula, std::vector<AttributeSpec> attributes = {}) {
  attributes.push_back(use_dst());
  return backward(kind, "src/dst", std::move(formula), std::move(attributes));
}

AttributeSpec bound(std::string name) {
  AttributeSpec spec = required_number(std::move(name), "bound of the interval");
  spec.check = not_nan;
  return spec;
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(AbsBackward) { return from_src(OpKind::AbsBackward, "diff_src = diff_dst * sign(src), 0 where src is 0"); }

LAMINA_SCHEMA(ClampBackward) {
  OpSchema schema =
      from_src_or_dst(OpKind::ClampBackward, "diff_src = diff_dst where min < src < max, else 0", {bound("min"), bound("max")});
  schema.check = [shapes = schema.check](const OpView& view) {
    const float low = view.attribute<float>("min");
    const float high = view.attribute<float>("max");
    if (low > high) view.fail(join("attribute min is ", low, ", allowed is at most max, which is ", high));
    shapes(view);
  };
  return schema;
}

LAMINA_SCHEMA(EluBackward) {
  return from_src_or_dst(
      OpKind::EluBackward,
      "diff_src = diff_dst where src > 0, else diff_dst * alpha * exp(src), which is diff_dst * (dst + alpha)",
      {required_number("alpha", "scale of the negative side")});
}

LAMINA_SCHEMA(GELUBackward) {
  return from_src(OpKind::GELUBackward, "diff_src = diff_dst * derivative of the chosen form of GELU at src",
                  {choice("mode", "gelu_erf", {"gelu_erf", "gelu_tanh"}, "which of the two forms")});
}

LAMINA_SCHEMA(HardSigmoidBackward) {
  return from_src(OpKind::HardSigmoidBackward, "diff_src = alpha * diff_dst where 0 < alpha * src + beta < 1, else 0",
                  {required_number("alpha", "slope"), required_number("beta", "offset")});
}

LAMINA_SCHEMA(HardSwishBackward) {
  return from_src(OpKind::HardSwishBackward,
                  "diff_src = 0 where src <= -3, diff_dst where src >= 3, else diff_dst * (2 * src + 3) / 6");
}

LAMINA_SCHEMA(MishBackward) {
  return from_src(OpKind::MishBackward, "diff_src = diff_dst * derivative of src * tanh(ln(1 + exp(src)))");
}

LAMINA_SCHEMA(ReLUBackward) { return from_src_or_dst(OpKind::ReLUBackward, "diff_src = diff_dst where src > 0, else 0"); }

LAMINA_SCHEMA(SigmoidBackward) {
  return from_src_or_dst(OpKind::SigmoidBackward, "diff_src = diff_dst * s * (1 - s), s = sigmoid(src) = dst");
}

LAMINA_SCHEMA(SoftPlusBackward) {
  AttributeSpec beta = required_number("beta", "sharpness");
  beta.required = false;
  beta.default_value = 1.0F;
  return from_src(OpKind::SoftPlusBackward, "diff_src = diff_dst * sigmoid(beta * src)", {beta});
}

LAMINA_SCHEMA(SqrtBackward) {
  return from_src_or_dst(OpKind::SqrtBackward, "diff_src = diff_dst / (2 * sqrt(src)) = diff_dst / (2 * dst)");
}

LAMINA_SCHEMA(TanhBackward) {
  return from_src_or_dst(OpKind::TanhBackward, "diff_src = diff_dst * (1 - t^2), t = tanh(src) = dst");
}
