// Attributes of ops that slide a window over the spatial axes: convolutions and pools.
#pragma once

#include <vector>

#include "interface/ops/parts.h"

namespace lamina::parts {

AttributeSpec auto_pad();
std::vector<AttributeSpec> strides_and_pads();  // strides, pads_begin, pads_end, auto_pad, data_format

// The extents of batch and channels, by data_format. Fails unless the rank is 3 or more.
struct BatchAndChannels {
  int64_t batch;
  int64_t channels;
};
BatchAndChannels batch_and_channels(const OpView& view, std::string_view port, const Dims& shape);

// The declared shape of output `port`, else the attribute's (all zeros mean that it is not given); nullopt if neither is
// known.
std::optional<Dims> given_shape(const OpView& view, std::string_view port, std::string_view attribute);

}  // namespace lamina::parts
