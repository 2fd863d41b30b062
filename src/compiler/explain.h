// Explanations of partitions: their ops with the reasons for them and, once compiled, kernels, schedules and tiles.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "compiler/ports.h"
#include "interface/explained_graph.h"
#include "interface/partition.h"

namespace lamina::compiler {

struct ExplainOptions {
  bool compile = true;                                       // also explain kernels, schedules and tiles
  std::function<void(size_t partition)> progress = nullptr;  // called before each partition; may be null
};

// `partitions` belong to one graph and are in an order in which they can run. `ports` has the tensors for which each is
// compiled: one entry per partition, or none at all; nullopt means the graph's tensors. For a partition that cannot be
// compiled, `problem` has the reason.
ExplainedGraph explain(std::span<const Partition> partitions, std::span<const std::optional<PortTensors>> ports,
                       const Backend& backend, const ExplainOptions& options);

}  // namespace lamina::compiler
