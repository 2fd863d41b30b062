// Pooling and its gradients.
#include "interface/ops/parts.h"
#include "interface/ops/window_attributes.h"

namespace lamina {

using namespace parts;

namespace {

std::vector<AttributeSpec> pool_attributes(std::vector<AttributeSpec> own) {
  std::vector<AttributeSpec> attributes = strides_and_pads();
  for (AttributeSpec& attribute : attributes)
    if (attribute.name == "pads_end")
      attribute = required_list("pads_end", nullptr, "one entry per spatial axis; negative crops");
  attributes.push_back(required_list("kernel", at_least_one, "extents of the window"));
  for (AttributeSpec& attribute : own) attributes.push_back(std::move(attribute));
  return attributes;
}

AttributeSpec rounding_type() { return choice("rounding_type", "floor", {"floor", "ceil"}, "rounding of the output extent"); }

AttributeSpec dilations() { return default_list("dilations", 1, at_least_one, "1 is dense; one entry per spatial axis"); }

AttributeSpec exclude_pad() { return required_flag("exclude_pad", "true: the divisor counts pixels inside the image only"); }

// The attributes of the examples: windows of two without gaps or pads, over one spatial axis.
Attributes pairs() {
  const std::vector<int64_t> two{2}, zero{0};
  return {{"kernel", two}, {"strides", two}, {"pads_begin", zero}, {"pads_end", zero}};
}

Dims pooled(const OpView& view, const Dims& spatial, bool round_up) {
  const Dims kernel = per_axis(view, "kernel", spatial.size(), 1);
  return window_output(view, spatial, kernel, per_axis(view, "dilations", spatial.size(), 1), round_up);
}

ShapeMap pool_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  const auto [batch, channels] = batch_and_channels(view, "src", src);
  const bool round_up = view.attribute<std::string>("rounding_type") == "ceil";
  return {{"dst", data_shape(view, batch, channels, pooled(view, spatial_extents(view, src), round_up))}};
}

// The gradient has no rounding_type: diff_dst must match one of the two ways in which the forward pass may round.
void require_pooled(const OpView& view, const Dims& src_spatial, const Dims& diff_dst) {
  const Dims given = spatial_extents(view, diff_dst);
  const Dims floored = pooled(view, src_spatial, false);
  if (dims_agree(floored, given) || dims_agree(pooled(view, src_spatial, true), given)) return;
  view.fail_shape(join("input diff_dst has spatial extents ", describe(given), ", allowed is ", describe(floored),
                       ", the number of windows along src extents ", describe(src_spatial)));
}

ShapeMap max_pool_backward_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  const Dims& diff_dst = view.shape("diff_dst");
  const auto from = batch_and_channels(view, "src", src);
  const auto to = batch_and_channels(view, "diff_dst", diff_dst);
  if (!dims_agree(from.batch, to.batch) || !dims_agree(from.channels, to.channels) || src.size() != diff_dst.size())
    view.fail_shape(
        join("input diff_dst has shape ", describe(diff_dst), ", allowed is batch and channels of src ", describe(src)));
  require_pooled(view, spatial_extents(view, src), diff_dst);
  return {{"diff_src", src}};
}

ShapeMap avg_pool_backward_shapes(const OpView& view) {
  const Dims& diff_dst = view.shape("diff_dst");
  const auto [batch, channels] = batch_and_channels(view, "diff_dst", diff_dst);
  const auto given = given_shape(view, "diff_src", "src_shape");
  if (!given) return {};
  if (given->size() != diff_dst.size())
    view.fail_shape(join("diff_src has shape ", describe(*given), ", allowed is rank ", diff_dst.size()));
  const Dims spatial = spatial_extents(view, *given);
  require_pooled(view, spatial, diff_dst);
  return {{"diff_src", data_shape(view, batch, channels, spatial)}};
}

OpSchema pool(OpKind kind, std::string formula, std::vector<AttributeSpec> own, double error) {
  return {.kind = kind,
          .op_class = OpClass::library,
          .nest = LoopNest::windows,
          .formula = std::move(formula),
          .inputs = {port("src", "T")},
          .outputs = {port(
              "dst", "T", "batch and channels of src; each spatial extent is the number of windows, rounded by rounding_type")},
          .attributes = pool_attributes(std::move(own)),
          .types = {{"T", floats_and_f64()}},
          .infer_shapes = pool_shapes,
          .error = error,
          .example = {.inputs = {{1, 8, 3}}, .attributes = pairs()}};
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(AvgPool) {
  return pool(OpKind::AvgPool, "dst = mean of src over the window", {exclude_pad(), rounding_type()}, 1e-6);
}

LAMINA_SCHEMA(MaxPool) {
  OpSchema schema =
      pool(OpKind::MaxPool, "dst = max of src over the window; padding is ignored", {dilations(), rounding_type()}, 0);
  for (const DataType integer : {DataType::s8, DataType::u8}) schema.types[0].allowed.push_back(integer);
  return schema;
}

LAMINA_SCHEMA(AvgPoolBackward) {
  OpSchema schema = pool(
      OpKind::AvgPoolBackward, "diff_src = each diff_dst spread evenly over its window",
      {exclude_pad(), default_list("src_shape", 0, not_negative, "shape of diff_src, if it is not an input; all 0: not set")},
      1e-6);
  schema.inputs = {port("diff_dst", "T"), optional_port("src_shape", "T1", "shape of diff_src")};
  schema.outputs = {port("diff_src", "T", "src_shape: input, attribute, or the shape given to the port")};
  schema.types = {{"T", floats_and_f64()}, {"T1", {DataType::s32}}};
  schema.infer_shapes = avg_pool_backward_shapes;
  schema.example.inputs = {{1, 4, 3}};
  schema.example.attributes["src_shape"] = std::vector<int64_t>{1, 8, 3};
  return schema;
}

LAMINA_SCHEMA(MaxPoolBackward) {
  OpSchema schema = pool(OpKind::MaxPoolBackward,
                         "diff_src = diff_dst at the position of the maximum of each window, 0 elsewhere", {dilations()}, 1e-6);
  schema.traits.jumps = true;
  schema.inputs = {port("src", "T"), port("diff_dst", "T")};
  schema.outputs = {port("diff_src", "T", "shape of src")};
  schema.infer_shapes = max_pool_backward_shapes;
  schema.example.inputs = {{1, 8, 3}, {1, 4, 3}};
  return schema;
}
