// Shape inference and shape checks that several schemas share. Dims may be kUnknownDim everywhere: an unknown dim agrees with
// every dim, and an unknown input results in an unknown output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interface/op_schema.h"

namespace lamina {

// The product of the dims; kUnknownDim if one of them is unknown.
int64_t product_or_unknown(const Dims& dims);

// The shape of an input whose rank is known; nullptr if it is omitted or its rank is unknown.
const Dims* known_shape(const OpView& view, std::string_view input_port);

// NumPy broadcasting; fails through `view` with both shapes in the sentence.
Dims broadcast_shapes(const OpView& view, const Dims& a, const Dims& b);
// Attribute auto_broadcast of `view` decides: "none" requires equal shapes.
Dims broadcast_inputs(const OpView& view, std::string_view a, std::string_view b);
// Whether `from` broadcasts one way to `to`.
bool broadcasts_to(const Dims& from, const Dims& to);

// Fails unless both inputs are absent, of unknown rank, or agree.
void require_same_shape(const OpView& view, std::string_view a, std::string_view b);
// Fails unless the input is absent, of unknown rank, or agrees with `expected`; `why` ends the sentence.
void require_shape(const OpView& view, std::string_view input, const Dims& expected, const std::string& why);

// Assigns the shape of the input to every named output.
ShapeMap outputs_like(const OpView& view, std::string_view input, const std::vector<std::string>& outputs);

// The position of the channels: last for data_format NXC, second for NCX.
int channel_axis(const OpView& view, int rank);
// The spatial extents, in order.
Dims spatial_extents(const OpView& view, const Dims& shape);
// The shape of batch, channels and spatial extents, ordered by data_format.
Dims data_shape(const OpView& view, int64_t batch, int64_t channels, const Dims& spatial);

// The axes of a reduction, wrapped and ascending. Empty if the `axes` input gives them at run time.
std::vector<int> reduced_axes(const OpView& view, int rank);

// The part that Slice reads along an axis of src: `extent` elements from `start` on, `step` apart.
struct AxisSlice {
  int64_t start = 0;
  int64_t extent = kUnknownDim;  // if src's extent is unknown and not all of it is read
  int64_t step = 1;
};
// One per axis of src. Negative bounds count from the end; bounds are clamped to the axis.
std::vector<AxisSlice> slices_of(const OpView& view, const Dims& src);

// ---- windows: convolutions and pools

struct Pads {
  Dims begin, end;  // one per spatial axis; kUnknownDim if an extent is unknown
};

// The pads of each spatial axis after auto_pad: VALID means zero; SAME_UPPER and SAME_LOWER split the required padding.
// `input` contains the extents that the window slides over.
Pads resolved_pads(const OpView& view, const Dims& input, const Dims& kernel, bool transposed = false);

// One entry per spatial axis; defaults of twelve entries are truncated. An empty list becomes `fallback` for every axis.
Dims per_axis(const OpView& view, std::string_view attribute, size_t spatial_rank, int64_t fallback);

// (in + pads - effective kernel) / stride + 1 per axis, rounded down, or up with rounding_type ceil.
Dims window_output(const OpView& view, const Dims& input, const Dims& kernel, const Dims& dilations, bool round_up);
// stride * (in - 1) + effective kernel - pads + output_padding.
Dims transposed_window_output(const OpView& view, const Dims& input, const Dims& kernel);

// Quantize and Dequantize per channel: "" if there is one scale per element of the axis (or the shape is unknown), else why
// the op is meaningless on its own.
std::string fault_of_scales(const Graph& graph, const Op& op);

}  // namespace lamina
