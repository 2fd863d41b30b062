// A graph as the client described it, and the partitions that lamina creates from it.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_set>
#include <vector>

#include "handle.h"
#include "onednn.h"
#include "op.h"
#include "partition.h"

struct dnnl_graph_graph {
  int engine_kind = dnnl_cpu;
  int fpmath_mode = dnnl_fpmath_mode_strict;
  bool fpmath_applies_to_int = false;
  bool deterministic = false;  // lamina is always deterministic
  std::vector<dnnl_graph_op> ops;
  std::unordered_set<size_t> op_ids;
  onednn_graph::LaminaGraph finalized;  // null until the graph is finalized
  std::vector<std::shared_ptr<const onednn_graph::PartitionBody>> partitions;
};

namespace onednn_graph {

dnnl_status_t add_op(dnnl_graph_graph& graph, const dnnl_graph_op& op);
dnnl_status_t finalize(dnnl_graph_graph& graph);
dnnl_status_t filter(dnnl_graph_graph& graph, int policy);

}  // namespace onednn_graph
