// Seeded data for graph inputs: every element depends on the seed, the tensor's id and its own index alone, so that threads and
// order of filling change nothing.
#pragma once

#include <map>
#include <memory>

#include "interface/graph.h"
#include "lamina/buffer.h"

namespace lamina::driver {

// Buffers of a graph by tensor id.
using Buffers = std::map<uint64_t, std::shared_ptr<Buffer>>;

// Fills the buffers of the graph inputs `missing`; buffers of the other inputs hold their data already.
void fill_inputs(const Graph& graph, const std::vector<ValueIndex>& missing, uint64_t seed, Buffers& buffers);

}  // namespace lamina::driver
