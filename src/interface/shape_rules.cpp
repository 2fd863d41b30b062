#include "interface/shape_rules.h"

#include <algorithm>

#include "interface/status.h"

namespace lamina {

int64_t product_or_unknown(const Dims& dims) {
  if (std::find(dims.begin(), dims.end(), kUnknownDim) != dims.end()) return kUnknownDim;
  return checked_product(dims, "product of extents");
}

const Dims* known_shape(const OpView& view, std::string_view input_port) {
  const LogicalTensor* tensor = view.input(input_port);
  return tensor != nullptr && tensor->shape ? &*tensor->shape : nullptr;
}

Dims broadcast_shapes(const OpView& view, const Dims& a, const Dims& b) {
  Dims result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    int64_t& dim = result[result.size() - 1 - i];
    if (x == y || y == 1) {
      dim = x;
    } else if (x == 1) {
      dim = y;
    } else if (x == kUnknownDim || y == kUnknownDim) {
      dim = x == kUnknownDim ? y : x;
    } else {
      view.fail_shape(join("shapes ", describe(a), " and ", describe(b), " do not broadcast, allowed is equal extents or 1"));
    }
  }
  return result;
}

Dims broadcast_inputs(const OpView& view, std::string_view a, std::string_view b) {
  const Dims& x = view.shape(a);
  const Dims& y = view.shape(b);
  if (view.attribute<std::string>("auto_broadcast") == "numpy") return broadcast_shapes(view, x, y);
  if (!dims_agree(x, y))
    view.fail_shape(join("input ", b, " has shape ", describe(y), ", allowed is ", describe(x), ", the shape of ", a,
                         ", because auto_broadcast is none"));
  return joined_dims(x, y);
}

bool broadcasts_to(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 1; i <= from.size(); ++i) {
    const int64_t dim = from[from.size() - i];
    if (dim != 1 && !dims_agree(dim, to[to.size() - i])) return false;
  }
  return true;
}

void require_shape(const OpView& view, std::string_view input, const Dims& expected, const std::string& why) {
  const Dims* shape = known_shape(view, input);
  if (shape == nullptr || dims_agree(*shape, expected)) return;
  view.fail_shape(join("input ", input, " has shape ", describe(*shape), ", allowed is ", describe(expected), ", ", why));
}

void require_same_shape(const OpView& view, std::string_view a, std::string_view b) {
  if (const Dims* shape = known_shape(view, a)) require_shape(view, b, *shape, join("the shape of ", a));
}

ShapeMap outputs_like(const OpView& view, std::string_view input, const std::vector<std::string>& outputs) {
  ShapeMap shapes;
  for (const std::string& output : outputs) shapes.emplace_back(output, view.shape(input));
  return shapes;
}

int channel_axis(const OpView& view, int rank) { return has_channels_last(view.op()) ? rank - 1 : 1; }

Dims spatial_extents(const OpView& view, const Dims& shape) {
  const int first = has_channels_last(view.op()) ? 1 : 2;
  return {shape.begin() + first, shape.begin() + first + static_cast<int64_t>(shape.size()) - 2};
}

Dims data_shape(const OpView& view, int64_t batch, int64_t channels, const Dims& spatial) {
  Dims shape{batch};
  const bool channels_last = has_channels_last(view.op());
  if (!channels_last) shape.push_back(channels);
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  if (channels_last) shape.push_back(channels);
  return shape;
}

std::vector<int> reduced_axes(const OpView& view, int rank) {
  std::vector<int> axes;
  for (int64_t axis : view.attribute<std::vector<int64_t>>("axes")) {
    if (axis < -rank || axis >= rank) view.fail(join("attribute axes contains ", axis, ", allowed is ", -rank, "..", rank - 1));
    const int wrapped = wrap_axis(axis, rank);
    if (std::find(axes.begin(), axes.end(), wrapped) != axes.end())
      view.fail(join("attribute axes contains axis ", wrapped, " twice, allowed is once"));
    axes.push_back(wrapped);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

// ---- slices

namespace {

// A bound of Slice, clamped to an axis of this extent.
int64_t bound_inside(int64_t bound, int64_t extent) {
  return std::clamp<int64_t>(bound < 0 ? bound + extent : bound, 0, extent);
}

AxisSlice slice_of(int64_t start, int64_t end, int64_t step, int64_t extent) {
  if (start == 0 && end == INT64_MAX && step == 1) return {0, extent, 1};
  if (extent == kUnknownDim) return {start, kUnknownDim, step};
  const int64_t first = bound_inside(start, extent), last = bound_inside(end, extent);
  return {first, last <= first ? 0 : (last - first - 1) / step + 1, step};
}

}  // namespace

std::vector<AxisSlice> slices_of(const OpView& view, const Dims& src) {
  const auto& starts = view.attribute<std::vector<int64_t>>("starts");
  const auto& ends = view.attribute<std::vector<int64_t>>("ends");
  const auto& axes = view.attribute<std::vector<int64_t>>("axes");
  const auto& steps = view.attribute<std::vector<int64_t>>("steps");
  const int rank = static_cast<int>(src.size());
  std::vector<AxisSlice> slices;
  for (const int64_t extent : src) slices.push_back({0, extent, 1});
  std::vector<bool> named(src.size(), false);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = axes.empty() ? static_cast<int64_t>(i) : axes[i];
    if (axis < -rank || axis >= rank) view.fail(join("attribute axes contains ", axis, ", allowed is ", -rank, "..", rank - 1));
    const auto place = static_cast<size_t>(wrap_axis(axis, rank));
    if (named[place]) view.fail(join("attribute axes contains axis ", place, " twice, allowed is once"));
    named[place] = true;
    slices[place] = slice_of(starts[i], ends[i], steps.empty() ? 1 : steps[i], src[place]);
  }
  return slices;
}

// ---- windows

namespace {

// Sums and products of extents use 128 bits: attributes may be any 64-bit number.
__extension__ using Wide = __int128;

int64_t narrowed(const OpView& view, Wide extent) {
  if (extent > INT64_MAX || extent < -INT64_MAX)
    view.fail_shape("strides, pads, dilations and the window lead to an extent that does not fit 64 bits");
  return static_cast<int64_t>(extent);
}

int64_t effective_kernel(const OpView& view, int64_t kernel, int64_t dilation) {
  return kernel == kUnknownDim ? kUnknownDim : narrowed(view, (Wide{kernel} - 1) * dilation + 1);
}

int64_t same_padding(int64_t input, int64_t effective, int64_t stride, bool transposed) {
  if (effective == kUnknownDim || (!transposed && input == kUnknownDim)) return kUnknownDim;
  const int64_t covered = transposed || input % stride == 0 ? stride : input % stride;
  return std::max<int64_t>(effective - covered, 0);
}

int64_t divided(int64_t value, int64_t by, bool round_up) { return value / by + (round_up && value % by != 0 ? 1 : 0); }

bool any_unknown(std::initializer_list<int64_t> dims) { return std::find(dims.begin(), dims.end(), kUnknownDim) != dims.end(); }

}  // namespace

Dims per_axis(const OpView& view, std::string_view attribute, size_t spatial_rank, int64_t fallback) {
  const auto found = view.op().attributes.find(attribute);
  Dims values = found == view.op().attributes.end() ? Dims{} : std::get<Dims>(found->second);
  if (values.empty()) return Dims(spatial_rank, fallback);
  // oneDNN's op set represents an absent value as twelve equal entries.
  const bool untouched = values.size() == static_cast<size_t>(kMaxRank) &&
                         std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == fallback; });
  if (untouched) values.resize(spatial_rank);
  if (values.size() != spatial_rank)
    view.fail(
        join("attribute ", attribute, " has ", values.size(), " entries, allowed is ", spatial_rank, ", one per spatial axis"));
  return values;
}

Pads resolved_pads(const OpView& view, const Dims& input, const Dims& kernel, bool transposed) {
  const size_t rank = input.size();
  const auto& auto_pad = view.attribute<std::string>("auto_pad");
  if (auto_pad == "None") return {per_axis(view, "pads_begin", rank, 0), per_axis(view, "pads_end", rank, 0)};
  Pads pads{Dims(rank, 0), Dims(rank, 0)};
  if (auto_pad == "VALID") return pads;
  const Dims strides = per_axis(view, "strides", rank, 1);
  const Dims dilations = per_axis(view, "dilations", rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t total = same_padding(input[i], effective_kernel(view, kernel[i], dilations[i]), strides[i], transposed);
    const bool unknown = total == kUnknownDim;
    const int64_t half = unknown ? kUnknownDim : total / 2;
    const int64_t rest = unknown ? kUnknownDim : total - total / 2;
    pads.begin[i] = auto_pad == "SAME_UPPER" ? half : rest;
    pads.end[i] = auto_pad == "SAME_UPPER" ? rest : half;
  }
  return pads;
}

Dims window_output(const OpView& view, const Dims& input, const Dims& kernel, const Dims& dilations, bool round_up) {
  const Dims strides = per_axis(view, "strides", input.size(), 1);
  const Pads pads = resolved_pads(view, input, kernel);
  Dims output(input.size(), kUnknownDim);
  for (size_t i = 0; i < input.size(); ++i) {
    const int64_t effective = effective_kernel(view, kernel[i], dilations[i]);
    if (any_unknown({input[i], effective, pads.begin[i], pads.end[i]})) continue;
    const int64_t last_start = narrowed(view, Wide{input[i]} + pads.begin[i] + pads.end[i] - effective);
    if (last_start < 0)
      view.fail_shape(join("spatial axis ", i, " has extent ", input[i], " with pads ", pads.begin[i], " and ", pads.end[i],
                           ", allowed is at least ", effective, ", the extent of the window"));
    output[i] = divided(last_start, strides[i], round_up) + 1;
  }
  return output;
}

Dims transposed_window_output(const OpView& view, const Dims& input, const Dims& kernel) {
  const Dims strides = per_axis(view, "strides", input.size(), 1);
  const Dims dilations = per_axis(view, "dilations", input.size(), 1);
  const Dims extra = per_axis(view, "output_padding", input.size(), 0);
  const Pads pads = resolved_pads(view, input, kernel, true);
  Dims output(input.size(), kUnknownDim);
  for (size_t i = 0; i < input.size(); ++i) {
    const int64_t effective = effective_kernel(view, kernel[i], dilations[i]);
    if (any_unknown({input[i], effective, pads.begin[i], pads.end[i]})) continue;
    output[i] = narrowed(view, Wide{strides[i]} * (Wide{input[i]} - 1) + effective - pads.begin[i] - pads.end[i] + extra[i]);
    if (output[i] < 0)
      view.fail_shape(
          join("spatial axis ", i, " would get extent ", output[i], ", allowed is 0 or more: the pads are too wide"));
  }
  return output;
}

std::string fault_of_scales(const Graph& graph, const Op& op) {
  if (!has_constant_scales(op.kind)) return "";
  const LogicalTensor& src = graph.tensor(op.inputs[0]);
  if (op.attribute<std::string>("qtype") != "per_channel" || !src.has_full_shape()) return "";
  const auto axis = static_cast<size_t>(wrap_axis(op.attribute<int64_t>("axis"), src.rank()));
  const auto scales = static_cast<int64_t>(op.attribute<std::vector<float>>("scales").size());
  const int64_t extent = (*src.shape)[axis];
  if (scales == extent) return "";
  return join("attribute scales has ", scales, " entries for an axis of extent ", extent,
              ", which only a grouped ConvTranspose after it could read");
}

}  // namespace lamina
