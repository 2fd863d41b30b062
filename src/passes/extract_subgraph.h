// In:    a partition, and the tensors at its ports in this compilation.
// Out:   the partition as a separate graph. Every inner shape is inferred again from the given ones.
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

// `inputs` (with known shapes) and `outputs` are in the order of partition.inputs and partition.outputs. Output tensors may
// have unknown shapes or layout any. Throws Error if the shapes do not fit.
Subgraph extract_subgraph(const Partition& partition, std::span<const LogicalTensor> inputs,
                          std::span<const LogicalTensor> outputs);

}  // namespace lamina
