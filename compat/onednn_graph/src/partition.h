// The objects behind partitions, compiled partitions and tensors.
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
  std::vector<dnnl_graph_op> ops;                            // in topological order
  std::vector<dnnl_graph_logical_tensor_t> inputs, outputs;  // as the client described them
  LaminaPartition partition;                                 // null: not supported
};

// An unsupported partition of one operation.
std::shared_ptr<const PartitionBody> unsupported(int engine_kind, const dnnl_graph_op& op);

}  // namespace onednn_graph

struct dnnl_graph_partition {
  size_t id = 0;  // id of this handle: oneDNN also numbers handles
  std::shared_ptr<const onednn_graph::PartitionBody> body;
};

// Creates a new handle for `body`.
std::unique_ptr<dnnl_graph_partition> make_partition(std::shared_ptr<const onednn_graph::PartitionBody> body);

struct dnnl_graph_compiled_partition {
  onednn_graph::LaminaCompiled compiled;  // null until it is compiled
  dnnl_engine_t engine = nullptr;
  std::vector<lamina_graph_logical_tensor_t> inputs, outputs;  // lamina's ports with the compiled shapes and layouts
  std::vector<size_t> input_places, output_places;             // the ids of the lists that were passed to compile
  std::vector<dnnl_graph_inplace_pair_t> inplace_pairs;
};

struct dnnl_graph_tensor {
  dnnl_graph_logical_tensor_t logical{};
  dnnl_engine_t engine = nullptr;     // null for a host scalar without one
  void* handle = nullptr;             // the client's handle; kAllocate if lamina allocated the memory
  onednn_graph::LaminaTensor tensor;  // null if lamina rejects such a tensor: the client can create it, but not execute with it
};
