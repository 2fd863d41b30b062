// Lamina chooses the layout of values between the steps of a partition. Convolutions and pools internally use images with the
// channels last, for any format of their ports. A value between two of them therefore gets that layout, also with
// elementwise ops in between. This avoids two transposes.
#pragma once

#include <span>

#include "interface/graph.h"

namespace lamina {

// `graph` has all shapes and strides. `outputs` are the user's and keep their layout.
void put_inner_channels_last(Graph& graph, std::span<const ValueIndex> outputs);

}  // namespace lamina
