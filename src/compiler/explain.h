// What there is to tell of partitions: their ops with the reasons behind them, and, once compiled, kernels, schedules and
// tiles.
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
  bool compile = true;  // tell of kernels, schedules and tiles too, of what is told is what runs
  std::function<void(size_t partition)> progress = nullptr;  // before each is looked at; may be null
};

// `partitions` are all of one graph, in an order in which they can run. `ports` say for which tensors each is compiled: one
// entry a partition, or none at all; nullopt: as the graph has them. A partition that cannot be compiled says so in its
// `problem`.
ExplainedGraph explain(std::span<const Partition> partitions, std::span<const std::optional<PortTensors>> ports,
                       const Backend& backend, const ExplainOptions& options);

}  // namespace lamina::compiler
