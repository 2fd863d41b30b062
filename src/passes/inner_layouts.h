// Where what passes between the steps of a partition lies is lamina's own choice. Convolutions and pools read and make images
// with the channels last, whatever the format of their ports: a value between two of them lies so, also where elementwise ops
// stand between, instead of being turned twice.
#pragma once

#include <span>

#include "interface/graph.h"

namespace lamina {

// `graph` with every shape and stride known; `outputs` are the user's, whose layout stays.
void put_inner_channels_last(Graph& graph, std::span<const ValueIndex> outputs);

}  // namespace lamina
