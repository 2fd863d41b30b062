// Owning pointers to lamina's handles.
#pragma once

#include <graph/lamina.h>

#include <memory>

namespace onednn_graph {

template <typename Object, lamina_status_t (*destroy)(Object*)>
struct Destroyer {
  void operator()(Object* object) const { destroy(object); }
};
template <typename Object, lamina_status_t (*destroy)(Object*)>
using Owned = std::unique_ptr<Object, Destroyer<Object, destroy>>;

using LaminaEngine = Owned<lamina_engine, lamina_engine_destroy>;
using LaminaStream = Owned<lamina_stream, lamina_stream_destroy>;
using LaminaAllocator = Owned<lamina_graph_allocator, lamina_graph_allocator_destroy>;
using LaminaOp = Owned<lamina_graph_op, lamina_graph_op_destroy>;
using LaminaGraph = Owned<lamina_graph_graph, lamina_graph_graph_destroy>;
using LaminaPartition = Owned<lamina_graph_partition, lamina_graph_partition_destroy>;
using LaminaCompiled = Owned<lamina_graph_compiled_partition, lamina_graph_compiled_partition_destroy>;
using LaminaTensor = Owned<lamina_graph_tensor, lamina_graph_tensor_destroy>;

}  // namespace onednn_graph
