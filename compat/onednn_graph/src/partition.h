// What stands behind partitions, compiled partitions and tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "handle.h"
#include "onednn.h"
#include "op.h"

namespace onednn_graph {

// Immutable, shared by the graph and its partitions' handles.
struct PartitionBody {
  int engine_kind = dnnl_cpu;
  int fpmath_mode = dnnl_fpmath_mode_strict;
  bool fpmath_applies_to_int = false;
  std::vector<dnnl_graph_op> ops;                            // in an order in which they can run
  std::vector<dnnl_graph_logical_tensor_t> inputs, outputs;  // as the client described them
  LaminaPartition partition;                                 // null: not supported
};

// One operation by itself, which is not supported.
std::shared_ptr<const PartitionBody> unsupported(int engine_kind, const dnnl_graph_op& op);

}  // namespace onednn_graph

struct dnnl_graph_partition {
  size_t id = 0;  // of this handle: oneDNN numbers them alike
  std::shared_ptr<const onednn_graph::PartitionBody> body;
};

// A handle of its own for `body`.
std::unique_ptr<dnnl_graph_partition> make_partition(std::shared_ptr<const onednn_graph::PartitionBody> body);

struct dnnl_graph_compiled_partition {
  onednn_graph::LaminaCompiled compiled;  // null until it was compiled
  dnnl_engine_t engine = nullptr;
  std::vector<lamina_graph_logical_tensor_t> inputs, outputs;  // lamina's ports, as they were compiled
  std::vector<size_t> input_places, output_places;             // the ids of the lists that it was compiled for
  std::vector<dnnl_graph_inplace_pair_t> inplace_pairs;
};

struct dnnl_graph_tensor {
  dnnl_graph_logical_tensor_t logical{};
  dnnl_engine_t engine = nullptr;     // null for a host scalar without one
  void* handle = nullptr;             // as it was given: kAllocate where the memory is lamina's
  onednn_graph::LaminaTensor tensor;  // null where lamina takes no such tensor: it can be made, but not executed on
};
