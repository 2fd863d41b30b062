// In:    a partition, and what its ports look like in this compilation.
// Out:   the partition as a graph of its own, every inner shape inferred anew from the given ones.
// Keeps: the ops, in the partition's order; the ids of ops and tensors.
#pragma once

#include <span>
#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"

namespace lamina {

struct Subgraph {
  Graph graph;
  std::vector<ValueIndex> inputs, outputs;  // value indices in `graph`, in the partition's port order
};

// `inputs` (known shapes) and `outputs` follow partition.inputs and partition.outputs; output tensors may have unknown shapes
// or layout any. Throws Error when shapes do not fit.
Subgraph extract_subgraph(const Partition& partition, std::span<const LogicalTensor> inputs,
                          std::span<const LogicalTensor> outputs);

}  // namespace lamina
