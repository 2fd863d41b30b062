// Convolution, its transpose, and the gradients of both.
//
// Weights have spatial axes X, input channels per group I and output channels O, in the order of weights_format. For a
// transposed convolution, I counts all input channels and O the output channels per group.
#include "interface/ops/parts.h"
#include "interface/ops/window_attributes.h"

namespace lamina {

using namespace parts;

namespace {

std::vector<AttributeSpec> conv_attributes(bool transposed) {
  std::vector<AttributeSpec> attributes = strides_and_pads();
  attributes.push_back(required_list("dilations", at_least_one, "1 is dense; one entry per spatial axis"));
  attributes.push_back({.name = "groups",
                        .type = AttributeType::s64,
                        .default_value = int64_t{1},
                        .check = at_least_one,
                        .meaning = "number of groups of channels"});
  attributes.push_back(transposed ? choice("weights_format", "XOI", {"XOI", "IOX"}, "order of the axes of weights")
                                  : choice("weights_format", "XIO", {"XIO", "OIX"}, "order of the axes of weights"));
  return attributes;
}

AttributeSpec output_padding() {
  return default_list("output_padding", 0, not_negative, "added to the far side; one entry per spatial axis");
}

// The attributes of the examples, over two spatial axes. `shape` names the list that gives the shape of the output, if the op
// needs one.
Attributes dense_windows(std::string shape = "", std::vector<int64_t> extents = {}) {
  const std::vector<int64_t> ones{1, 1}, zeros{0, 0};
  Attributes attributes{{"strides", ones}, {"dilations", ones}, {"pads_begin", zeros}, {"pads_end", zeros}};
  if (!shape.empty()) attributes[std::move(shape)] = std::move(extents);
  return attributes;
}

struct Weights {
  int64_t input_channels;
  int64_t output_channels;
  Dims kernel;
};

Weights weights_of(const OpView& view, const Dims& shape, size_t data_rank) {
  if (shape.size() != data_rank)
    view.fail_shape(join("weights have shape ", describe(shape), ", allowed is rank ", data_rank, ", the rank of the data"));
  const auto& format = view.attribute<std::string>("weights_format");
  const size_t rank = shape.size();
  if (format == "OIX") return {shape[1], shape[0], {shape.begin() + 2, shape.end()}};
  if (format == "IOX") return {shape[0], shape[1], {shape.begin() + 2, shape.end()}};
  const Dims kernel{shape.begin(), shape.end() - 2};
  if (format == "XIO") return {shape[rank - 2], shape[rank - 1], kernel};
  return {shape[rank - 1], shape[rank - 2], kernel};
}

Dims weights_shape(const OpView& view, const Weights& weights) {
  const auto& format = view.attribute<std::string>("weights_format");
  Dims shape = weights.kernel;
  if (format == "OIX") shape.insert(shape.begin(), {weights.output_channels, weights.input_channels});
  if (format == "IOX") shape.insert(shape.begin(), {weights.input_channels, weights.output_channels});
  if (format == "XIO") shape.insert(shape.end(), {weights.input_channels, weights.output_channels});
  if (format == "XOI") shape.insert(shape.end(), {weights.output_channels, weights.input_channels});
  return shape;
}

int64_t times(int64_t dim, int64_t factor) { return product_or_unknown({dim, factor}); }

int64_t per_group(const OpView& view, int64_t channels, const std::string& what) {
  const auto groups = view.attribute<int64_t>("groups");
  if (channels == kUnknownDim) return kUnknownDim;
  if (channels % groups != 0)
    view.fail(join("attribute groups is ", groups, ", allowed is a divisor of the ", channels, " ", what));
  return channels / groups;
}

void require_channels(const OpView& view, const std::string& what, int64_t given, int64_t expected) {
  if (dims_agree(given, expected)) return;
  view.fail_shape(join(what, " are ", given, ", allowed is ", expected));
}

Dims dilations_of(const OpView& view, size_t spatial_rank) { return per_axis(view, "dilations", spatial_rank, 1); }

ShapeMap conv_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  const auto [batch, channels] = batch_and_channels(view, "src", src);
  const Weights weights = weights_of(view, view.shape("weights"), src.size());
  require_channels(view, "input channels of weights", weights.input_channels, per_group(view, channels, "channels of src"));
  per_group(view, weights.output_channels, "output channels of weights");
  require_shape(view, "bias", {weights.output_channels}, "the output channels");
  const Dims spatial = spatial_extents(view, src);
  return {{"dst", data_shape(view, batch, weights.output_channels,
                             window_output(view, spatial, weights.kernel, dilations_of(view, spatial.size()), false))}};
}

ShapeMap conv_backward_data_shapes(const OpView& view) {
  const Dims& diff_dst = view.shape("diff_dst");
  const auto [batch, channels] = batch_and_channels(view, "diff_dst", diff_dst);
  const Weights weights = weights_of(view, view.shape("weights"), diff_dst.size());
  require_channels(view, "output channels of weights", weights.output_channels, channels);
  const auto given = given_shape(view, "diff_src", "dst_shape");
  if (!given) return {};
  if (given->size() != diff_dst.size())
    view.fail_shape(join("diff_src has shape ", describe(*given), ", allowed is rank ", diff_dst.size()));
  const Dims spatial = spatial_extents(view, *given);
  const Dims forward = window_output(view, spatial, weights.kernel, dilations_of(view, spatial.size()), false);
  if (!dims_agree(forward, spatial_extents(view, diff_dst)))
    view.fail_shape(join("diff_src has spatial extents ", describe(spatial), " that convolve to ", describe(forward),
                         ", allowed are extents that convolve to those of diff_dst, ",
                         describe(spatial_extents(view, diff_dst))));
  const int64_t input_channels = times(weights.input_channels, view.attribute<int64_t>("groups"));
  return {{"diff_src", data_shape(view, batch, input_channels, spatial)}};
}

ShapeMap conv_backward_weights_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  const Dims& diff_dst = view.shape("diff_dst");
  const auto given = given_shape(view, "diff_weights", "weights_shape");
  if (!given) return {};
  const auto from = batch_and_channels(view, "src", src);
  const auto to = batch_and_channels(view, "diff_dst", diff_dst);
  const Weights weights{per_group(view, from.channels, "channels of src"), to.channels,
                        weights_of(view, *given, src.size()).kernel};
  return {{"diff_weights", weights_shape(view, weights)}};
}

ShapeMap transposed_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  const auto [batch, channels] = batch_and_channels(view, "src", src);
  const Weights weights = weights_of(view, view.shape("weights"), src.size());
  require_channels(view, "input channels of weights", weights.input_channels, channels);
  per_group(view, channels, "channels of src");
  const int64_t output_channels = times(weights.output_channels, view.attribute<int64_t>("groups"));
  require_shape(view, "bias", {output_channels}, "the output channels");
  return {{"dst", data_shape(view, batch, output_channels,
                             transposed_window_output(view, spatial_extents(view, src), weights.kernel))}};
}

ShapeMap transposed_backward_data_shapes(const OpView& view) {
  const Dims& diff_dst = view.shape("diff_dst");
  const auto [batch, channels] = batch_and_channels(view, "diff_dst", diff_dst);
  const Weights weights = weights_of(view, view.shape("weights"), diff_dst.size());
  require_channels(view, "output channels of weights", weights.output_channels,
                   per_group(view, channels, "channels of diff_dst"));
  const Dims spatial = spatial_extents(view, diff_dst);
  return {{"diff_src", data_shape(view, batch, weights.input_channels,
                                  window_output(view, spatial, weights.kernel, dilations_of(view, spatial.size()), false))}};
}

ShapeMap transposed_backward_weights_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  const Dims& diff_dst = view.shape("diff_dst");
  const auto given = given_shape(view, "diff_weights", "weights_shape");
  if (!given) return {};
  const auto from = batch_and_channels(view, "src", src);
  const auto to = batch_and_channels(view, "diff_dst", diff_dst);
  const Weights weights{from.channels, per_group(view, to.channels, "channels of diff_dst"),
                        weights_of(view, *given, src.size()).kernel};
  return {{"diff_weights", weights_shape(view, weights)}};
}

OpSchema convolution(OpKind kind, bool transposed, std::string formula) {
  return {.kind = kind,
          .op_class = OpClass::library,
          .formula = std::move(formula),
          .inputs = {},
          .outputs = {},
          .attributes = conv_attributes(transposed),
          .types = {{"T", floats_and_f64()}},
          .traits = {.contracts = true}};
}

// A gradient whose spatial extents may be given by an s32 tensor at run time.
OpSchema gradient(OpKind kind, bool transposed, std::string formula) {
  OpSchema schema = convolution(kind, transposed, std::move(formula));
  schema.types = {{"T1", floats_and_f64()}, {"T2", {DataType::s32}}};
  return schema;
}

AttributeSpec shape_list(std::string name) {
  return default_list(std::move(name), 0, not_negative, "shape of the output, if it is not an input; all 0: not set");
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(Convolution) {
  OpSchema schema = convolution(OpKind::Convolution, false, "dst = cross-correlation of src with weights + bias");
  schema.inputs = {port("src", "T"), as(PortRole::weights, port("weights", "T")),
                   optional_port("bias", "T", "[output channels]")};
  schema.outputs = {
      port("dst", "T", "batch of src, output channels of weights, spatial extents by strides, pads and dilations")};
  schema.infer_shapes = conv_shapes;
  schema.example = {.inputs = {{1, 6, 6, 4}, {3, 3, 4, 8}}, .attributes = dense_windows()};
  return schema;
}

LAMINA_SCHEMA(ConvolutionBackwardData) {
  OpSchema schema = gradient(OpKind::ConvolutionBackwardData, false, "diff_src = gradient of Convolution for src");
  schema.inputs = {port("diff_dst", "T1"), as(PortRole::weights, port("weights", "T1")),
                   optional_port("dst_shape", "T2", "shape of diff_src")};
  schema.outputs = {
      port("diff_src", "T1",
           "dst_shape if given, else the smallest src shape that the forward op maps to diff_dst, plus output_padding")};
  schema.attributes.push_back(output_padding());
  schema.attributes.push_back(shape_list("dst_shape"));
  schema.infer_shapes = conv_backward_data_shapes;
  schema.example = {.inputs = {{1, 4, 4, 8}, {3, 3, 4, 8}}, .attributes = dense_windows("dst_shape", {1, 6, 6, 4})};
  return schema;
}

LAMINA_SCHEMA(ConvolutionBackwardWeights) {
  OpSchema schema = gradient(OpKind::ConvolutionBackwardWeights, false, "diff_weights = gradient of Convolution for weights");
  schema.inputs = {port("src", "T1"), port("diff_dst", "T1"), optional_port("weights_shape", "T2", "shape of diff_weights")};
  schema.outputs = {
      as(PortRole::weights, port("diff_weights", "T1", "weights_shape: input, attribute, or the shape given to the port"))};
  schema.attributes.push_back(shape_list("weights_shape"));
  schema.infer_shapes = conv_backward_weights_shapes;
  schema.example = {.inputs = {{1, 6, 6, 4}, {1, 4, 4, 8}}, .attributes = dense_windows("weights_shape", {3, 3, 4, 8})};
  return schema;
}

LAMINA_SCHEMA(ConvTranspose) {
  OpSchema schema = convolution(OpKind::ConvTranspose, true, "dst = transpose of a convolution of src with weights + bias");
  schema.inputs = {port("src", "T"), as(PortRole::weights, port("weights", "T")),
                   optional_port("bias", "T", "[output channels]")};
  schema.outputs = {port(
      "dst", "T", "batch of src, output channels of weights, (extent - 1) * stride + dilated kernel - pads + output_padding")};
  schema.attributes.push_back(output_padding());
  schema.infer_shapes = transposed_shapes;
  schema.example = {.inputs = {{1, 4, 4, 8}, {3, 3, 4, 8}}, .attributes = dense_windows()};
  return schema;
}

LAMINA_SCHEMA(ConvTransposeBackwardData) {
  OpSchema schema = convolution(OpKind::ConvTransposeBackwardData, true, "diff_src = gradient of ConvTranspose for src");
  schema.inputs = {port("diff_dst", "T"), as(PortRole::weights, port("weights", "T"))};
  schema.outputs = {
      port("diff_src", "T", "batch of diff_dst, input channels of weights, spatial extents of a convolution of diff_dst")};
  schema.infer_shapes = transposed_backward_data_shapes;
  schema.example = {.inputs = {{1, 6, 6, 4}, {3, 3, 4, 8}}, .attributes = dense_windows()};
  return schema;
}

LAMINA_SCHEMA(ConvTransposeBackwardWeights) {
  OpSchema schema =
      gradient(OpKind::ConvTransposeBackwardWeights, true, "diff_weights = gradient of ConvTranspose for weights");
  schema.inputs = {port("src", "T1"), port("diff_dst", "T1"), optional_port("weights_shape", "T2", "shape of diff_weights")};
  schema.outputs = {
      as(PortRole::weights, port("diff_weights", "T1", "weights_shape: input, attribute, or the shape given to the port"))};
  schema.attributes.push_back(shape_list("weights_shape"));
  schema.infer_shapes = transposed_backward_weights_shapes;
  schema.example = {.inputs = {{1, 4, 4, 8}, {1, 6, 6, 4}}, .attributes = dense_windows("weights_shape", {3, 3, 4, 8})};
  return schema;
}
