// Resampling of the spatial axes, and its adjoint.
#include <cmath>

#include "interface/ops/parts.h"
#include "interface/ops/window_attributes.h"

namespace lamina {

using namespace parts;

namespace {

std::string positive_factors(const Attribute& value) {
  for (float factor : std::get<std::vector<float>>(value))
    if (!std::isfinite(factor) || factor <= 0) return "positive finite factors";
  return "";
}

std::vector<AttributeSpec> attributes() {
  AttributeSpec mode = choice("mode", "", {"nearest", "linear", "bilinear", "trilinear"}, "interpolation between pixels");
  mode.default_value = std::nullopt;
  mode.required = true;
  return {
      mode,
      {.name = "sizes", .type = AttributeType::s64_list, .check = not_negative, .meaning = "one extent per spatial axis"},
      {.name = "scales", .type = AttributeType::f32_list, .check = positive_factors, .meaning = "one factor per spatial axis"},
      choice("coordinate_transformation_mode", "half_pixel", {"half_pixel", "align_corners"},
             "position of the centres of pixels"),
      data_format()};
}

// The attributes of the examples, over one spatial axis.
Attributes to_eight() { return {{"mode", std::string("nearest")}, {"sizes", std::vector<int64_t>{8}}}; }

template <typename T>
const std::vector<T>& list_of(const OpView& view, std::string_view name) {
  static const std::vector<T> none;
  return view.op().has_attribute(name) ? view.attribute<std::vector<T>>(name) : none;
}

void check_sizes_or_scales(const OpView& view) {
  const bool sizes = !list_of<int64_t>(view, "sizes").empty();
  const bool scales = !list_of<float>(view, "scales").empty();
  if (sizes && scales) view.fail("attributes sizes and scales are both given, allowed is exactly one of them");
  if (!sizes && !scales && view.input("sizes") == nullptr)
    view.fail("neither attribute sizes nor attribute scales is given, allowed is exactly one of them, or input sizes");
}

template <typename T>
void require_entries(const OpView& view, std::string_view name, const std::vector<T>& list, size_t spatial_rank) {
  if (list.size() != spatial_rank)
    view.fail(join("attribute ", name, " has ", list.size(), " entries, allowed is ", spatial_rank, ", one per spatial axis"));
}

// The resampled extents of `spatial`.
Dims resampled(const OpView& view, const Dims& spatial) {
  const auto& sizes = list_of<int64_t>(view, "sizes");
  const auto& scales = list_of<float>(view, "scales");
  if (!sizes.empty()) {
    require_entries(view, "sizes", sizes, spatial.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (spatial[i] == 0 && sizes[i] > 0)
        view.fail_shape(
            join("attribute sizes has ", sizes[i], " for spatial axis ", i, ", along which src has no pixels, allowed is 0"));
    }
    return sizes;
  }
  Dims result(spatial.size(), kUnknownDim);
  if (scales.empty()) return result;
  require_entries(view, "scales", scales, spatial.size());
  for (size_t i = 0; i < spatial.size(); ++i)
    if (spatial[i] != kUnknownDim) result[i] = static_cast<int64_t>(static_cast<float>(spatial[i]) * scales[i]);
  return result;
}

ShapeMap interpolate_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  const auto [batch, channels] = batch_and_channels(view, "src", src);
  return {{"dst", data_shape(view, batch, channels, resampled(view, spatial_extents(view, src)))}};
}

ShapeMap interpolate_backward_shapes(const OpView& view) {
  const Dims& src = view.shape("src");
  const auto [batch, channels] = batch_and_channels(view, "src", src);
  require_shape(view, "diff_dst", data_shape(view, batch, channels, resampled(view, spatial_extents(view, src))),
                "the shape of the resampled src");
  return {{"diff_src", src}};
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(Interpolate) {
  return {.kind = OpKind::Interpolate,
          .op_class = OpClass::library,
          .nest = LoopNest::windows,
          .formula = "dst = src resampled along the spatial axes, nearest or linear",
          .inputs = {port("src", "T1"), optional_port("sizes", "T2", "one extent per spatial axis")},
          .outputs = {port("dst", "T1", "batch and channels of src; spatial extents are sizes, or floor(extent * scale)")},
          .attributes = attributes(),
          .types = {{"T1", floats_of_opset()}, {"T2", {DataType::s32}}},
          .check = check_sizes_or_scales,
          .infer_shapes = interpolate_shapes,
          .error = 1e-6,
          .example = {.inputs = {{1, 4, 3}}, .attributes = to_eight()}};
}

LAMINA_SCHEMA(InterpolateBackward) {
  return {.kind = OpKind::InterpolateBackward,
          .op_class = OpClass::library,
          .nest = LoopNest::windows,
          .formula = "diff_src = adjoint of Interpolate applied to diff_dst",
          .inputs = {port("src", "T1"), port("diff_dst", "T1"), optional_port("sizes", "T2", "one extent per spatial axis")},
          .outputs = {port("diff_src", "T1", "shape of src")},
          .attributes = attributes(),
          .types = {{"T1", floats_of_opset()}, {"T2", {DataType::s32}}},
          .check = check_sizes_or_scales,
          .infer_shapes = interpolate_backward_shapes,
          .error = 2e-6,
          .example = {.inputs = {{1, 4, 3}, {1, 8, 3}}, .attributes = to_eight()}};
}
