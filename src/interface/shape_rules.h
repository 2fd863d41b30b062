// Shape inference and shape checks that several schemas share. Dims may be kUnknownDim everywhere: what is unknown agrees with
// everything, and an unknown input gives an unknown output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interface/op_schema.h"

namespace lamina {

// Product of the dims, kUnknownDim when one of them is.
int64_t product_or_unknown(const Dims& dims);

// The shape of an input whose rank is known; nullptr when it is left out or of unknown rank.
const Dims* known_shape(const OpView& view, std::string_view input_port);

// NumPy broadcasting; fails through `view` naming both shapes.
Dims broadcast_shapes(const OpView& view, const Dims& a, const Dims& b);
// Attribute auto_broadcast of `view` decides: "none" asks for equal shapes.
Dims broadcast_inputs(const OpView& view, std::string_view a, std::string_view b);
// `from` broadcasts one way to `to`.
bool broadcasts_to(const Dims& from, const Dims& to);

// Fails unless both inputs are absent, of unknown rank, or agree.
void require_same_shape(const OpView& view, std::string_view a, std::string_view b);
// Fails unless the input is absent, of unknown rank, or agrees with `expected`; `why` ends the sentence.
void require_shape(const OpView& view, std::string_view input, const Dims& expected, const std::string& why);

// Every named output has the shape of the input.
ShapeMap outputs_like(const OpView& view, std::string_view input, const std::vector<std::string>& outputs);

// Position of the channels: data_format NXC last, NCX second.
int channel_axis(const OpView& view, int rank);
// Extents between batch and channels, in order.
Dims spatial_extents(const OpView& view, const Dims& shape);
// [batch, channels] + spatial put together by data_format.
Dims data_shape(const OpView& view, int64_t batch, int64_t channels, const Dims& spatial);

// Axes of a reduction, wrapped and ascending. Empty when the `axes` input decides.
std::vector<int> reduced_axes(const OpView& view, int rank);

// What Slice takes along an axis of src: `extent` elements from `start` on, `step` apart.
struct AxisSlice {
  int64_t start = 0;
  int64_t extent = kUnknownDim;  // where that of src is unknown, unless all of it is taken
  int64_t step = 1;
};
// One per axis of src. Bounds count from the end where they are negative and are cut off at the ends of the axis.
std::vector<AxisSlice> slices_of(const OpView& view, const Dims& src);

// ---- windows: convolutions and pools

struct Pads {
  Dims begin, end;  // one per spatial axis; kUnknownDim where an extent is unknown
};

// Pads of one spatial axis each, after auto_pad: VALID is zero; SAME_UPPER and SAME_LOWER split what is needed. `input` holds
// the extents that the window slides over.
Pads resolved_pads(const OpView& view, const Dims& input, const Dims& kernel, bool transposed = false);

// One entry per spatial axis; defaults of twelve entries are cut down. Empty lists become `fallback` everywhere.
Dims per_axis(const OpView& view, std::string_view attribute, size_t spatial_rank, int64_t fallback);

// (in + pads - effective kernel) / stride + 1 per axis, floored, or with rounding_type ceil rounded up.
Dims window_output(const OpView& view, const Dims& input, const Dims& kernel, const Dims& dilations, bool round_up);
// stride * (in - 1) + effective kernel - pads + output_padding.
Dims transposed_window_output(const OpView& view, const Dims& input, const Dims& kernel);

// Quantize and Dequantize per channel: "" when there is one scale per element of the axis (or the shape is unknown), else why
// the op means nothing by itself.
std::string fault_of_scales(const Graph& graph, const Op& op);

}  // namespace lamina
