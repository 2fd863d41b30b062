// Lamina chooses the layout of values between the steps of a partition. Convolutions and pools internally use images with the
// channels last, for any format of their ports. A value between two of them therefore gets that layout, also with
// elementwise ops in between, and where images are joined along their channels. This avoids two transposes.
//
// A value that is only joined with others gets the strides of its part of the result. Its producer then writes it there
// (kernels/joined_values.h), and nothing is copied.
#pragma once

#include <span>

#include "interface/graph.h"

namespace lamina {

// `graph` has all shapes and strides. `outputs` are the user's and keep their layout.
void put_inner_channels_last(Graph& graph, std::span<const ValueIndex> outputs);

}  // namespace lamina
