// Seeded data for graph inputs: every element depends only on the seed, the tensor's id and its own index, not on threads or
// the order of filling.
#pragma once

#include <map>
#include <memory>

#include "interface/graph.h"
#include "lamina/buffer.h"

namespace lamina::driver {

// Buffers of a graph by tensor id.
using Buffers = std::map<uint64_t, std::shared_ptr<Buffer>>;

// Fills the buffers of the graph inputs `missing`; buffers of the other inputs already contain their data.
void fill_inputs(const Graph& graph, const std::vector<ValueIndex>& missing, uint64_t seed, Buffers& buffers);

}  // namespace lamina::driver
