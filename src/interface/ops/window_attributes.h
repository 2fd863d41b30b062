// Attributes of ops that slide a window over the spatial axes: convolutions and pools.
#pragma once

#include <vector>

#include "interface/ops/parts.h"

namespace lamina::parts {

AttributeSpec auto_pad();
std::vector<AttributeSpec> strides_and_pads();  // strides, pads_begin, pads_end, auto_pad, data_format

// Batch and channels of a tensor by data_format. Fails unless the rank is 3 or more.
struct BatchAndChannels {
  int64_t batch;
  int64_t channels;
};
BatchAndChannels batch_and_channels(const OpView& view, std::string_view port, const Dims& shape);

// The shape that output `port` is given, else the attribute's (all zeros: not given); nullopt when neither is known.
std::optional<Dims> given_shape(const OpView& view, std::string_view port, std::string_view attribute);

}  // namespace lamina::parts
