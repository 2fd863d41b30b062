#include "partition.h"

#include <graph/lamina.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "boundary.h"
#include "engines.h"
#include "graph.h"
#include "vocabulary.h"

using namespace onednn_graph;

std::unique_ptr<dnnl_graph_partition> make_partition(std::shared_ptr<const PartitionBody> body) {
  static std::atomic<size_t> next_id{0};
  return std::make_unique<dnnl_graph_partition>(dnnl_graph_partition{next_id++, std::move(body)});
}

namespace onednn_graph {
namespace {

using Tensor = dnnl_graph_logical_tensor_t;

dnnl_status_t partition_of_op(const dnnl_graph_op& op, int kind, dnnl_graph_partition_t& partition) {
  dnnl_graph_graph graph;
  graph.engine_kind = kind;
  if (const dnnl_status_t status = add_op(graph, op); status != dnnl_success) return status;
  if (const dnnl_status_t status = finalize(graph); status != dnnl_success) return status;
  if (const dnnl_status_t status = filter(graph, dnnl_graph_partition_policy_fusion); status != dnnl_success) return status;
  if (graph.partitions.size() != 1) return dnnl_invalid_graph;
  partition = make_partition(graph.partitions[0]).release();
  return dnnl_success;
}

dnnl_status_t copy_ports(const std::vector<Tensor>& ports, size_t num, Tensor* tensors) {
  if (any_null(tensors) || ports.size() != num) return dnnl_invalid_arguments;
  std::copy(ports.begin(), ports.end(), tensors);
  return dnnl_success;
}

// ---- compiling ----

bool has_layout(const Tensor& tensor) { return number_of(tensor.layout_type) != dnnl_graph_layout_type_undef; }

// Removes the given tensors that are not ports of the partition.
void keep_ports(const std::vector<Tensor>& ports, std::vector<Tensor>& given) {
  const auto is_port = [&](const Tensor& tensor) {
    return std::any_of(ports.begin(), ports.end(), [&](const Tensor& port) { return port.id == tensor.id; });
  };
  given.erase(std::remove_if(given.begin(), given.end(), [&](const Tensor& tensor) { return !is_port(tensor); }), given.end());
}

std::vector<size_t> ids_of(const std::vector<Tensor>& tensors) {
  std::vector<size_t> ids;
  for (const Tensor& tensor : tensors) ids.push_back(tensor.id);
  return ids;
}

// Returns false for a null list or a null entry.
bool read(size_t num, const Tensor** tensors, std::vector<Tensor>& list) {
  if (num > 0 && any_null(tensors)) return false;
  for (size_t i = 0; i < num; ++i) {
    if (any_null(tensors[i])) return false;
    list.push_back(*tensors[i]);
  }
  return true;
}

lamina_status_t compile(const_lamina_graph_partition_t partition, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs, lamina_engine_t engine, LaminaCompiled& compiled) {
  lamina_graph_compiled_partition_t made = nullptr;
  const lamina_status_t status = lamina_graph_compiled_partition_create(&made, partition);
  compiled.reset(made);
  if (status != lamina_success) return status;
  const auto ins = lamina_tensors(inputs), outs = lamina_tensors(outputs);
  std::vector<const lamina_graph_logical_tensor_t*> in, out;
  for (const auto& tensor : ins) in.push_back(&tensor);
  for (const auto& tensor : outs) out.push_back(&tensor);
  return lamina_graph_partition_compile(partition, made, in.size(), in.data(), out.size(), out.data(), engine);
}

// lamina reports every output that may share memory with an input. oneDNN reports only outputs of its binary operations,
// softmax and a few others, and its clients, including its own tests, rely on this.
bool tells_inplace(int kind) {
  switch (kind) {
    case dnnl_graph_op_add:
    case dnnl_graph_op_subtract:
    case dnnl_graph_op_multiply:
    case dnnl_graph_op_divide:
    case dnnl_graph_op_maximum:
    case dnnl_graph_op_minimum:
    case dnnl_graph_op_softmax:
    case dnnl_graph_op_log_softmax:
    case dnnl_graph_op_softmax_backward:
    case dnnl_graph_op_bias_add:
    case dnnl_graph_op_reorder: return true;
    default: return false;
  }
}

std::vector<dnnl_graph_inplace_pair_t> inplace_pairs(const PartitionBody& body,
                                                     const_lamina_graph_compiled_partition_t compiled) {
  size_t num = 0;
  const lamina_graph_inplace_pair_t* pairs = nullptr;
  lamina_graph_compiled_partition_get_inplace_ports(compiled, &num, &pairs);
  std::vector<dnnl_graph_inplace_pair_t> result;
  for (size_t i = 0; i < num; ++i) {
    const bool told = std::any_of(body.ops.begin(), body.ops.end(), [&](const dnnl_graph_op& op) {
      return tells_inplace(op.kind) && op.outputs.size() == 1 && op.outputs[0].id == pairs[i].output_id;
    });
    if (told) result.push_back({pairs[i].input_id, pairs[i].output_id});
  }
  return result;
}

// The tensor passed to compile for this port; for a tensor between operations, the graph's tensor without its shape.
Tensor given_now(const Tensor& port, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  for (const auto* const given : {&inputs, &outputs})
    for (const Tensor& tensor : *given)
      if (tensor.id == port.id) return tensor;
  Tensor inside = port;
  inside.ndims = DNNL_GRAPH_UNKNOWN_NDIMS;
  return inside;
}

// oneDNN also compiles for shapes and types that contradict the graph. lamina has used the graph's shapes for partitioning,
// so the partition is rebuilt from the new ones. Null if the result is not a single partition.
std::shared_ptr<const PartitionBody> made_again(const PartitionBody& body, const std::vector<Tensor>& inputs,
                                                const std::vector<Tensor>& outputs) {
  dnnl_graph_graph graph;
  graph.engine_kind = body.engine_kind;
  graph.fpmath_mode = body.fpmath_mode;
  graph.fpmath_applies_to_int = body.fpmath_applies_to_int;
  for (dnnl_graph_op op : body.ops) {
    for (auto* const ports : {&op.inputs, &op.outputs})
      for (Tensor& port : *ports) port = given_now(port, inputs, outputs);
    if (add_op(graph, op) != dnnl_success) return nullptr;
  }
  if (finalize(graph) != dnnl_success || filter(graph, dnnl_graph_partition_policy_fusion) != dnnl_success) return nullptr;
  if (graph.partitions.size() != 1 || graph.partitions[0]->partition == nullptr) return nullptr;
  return graph.partitions[0];
}

// Whether the given tensors contradict the graph. Other failures to compile do not depend on the graph.
bool contradicts(const PartitionBody& body, const std::vector<Tensor>& given) {
  const auto differs = [&](const Tensor& tensor) {
    for (const auto* const ports : {&body.inputs, &body.outputs})
      for (const Tensor& port : *ports)
        if (port.id == tensor.id)
          return number_of(port.data_type) != number_of(tensor.data_type) ||
                 (port.ndims >= 0 && tensor.ndims >= 0 && port.ndims != tensor.ndims) ||
                 (port.ndims == tensor.ndims && !std::equal(port.dims, port.dims + dims_in(port), tensor.dims));
    return false;
  };
  return std::any_of(given.begin(), given.end(), differs);
}

using GetPortsNum = lamina_status_t (*)(const_lamina_graph_partition_t, size_t*);
using GetPorts = lamina_status_t (*)(const_lamina_graph_partition_t, size_t, lamina_graph_logical_tensor_t*);

// The ports with the compiled shapes and layouts.
std::vector<lamina_graph_logical_tensor_t> compiled_ports(const_lamina_graph_partition_t partition,
                                                          const_lamina_graph_compiled_partition_t compiled, GetPortsNum get_num,
                                                          GetPorts get) {
  size_t num = 0;
  get_num(partition, &num);
  std::vector<lamina_graph_logical_tensor_t> ports(num);
  get(partition, num, ports.data());
  for (auto& port : ports) lamina_graph_compiled_partition_query_logical_tensor(compiled, port.id, &port);
  return ports;
}

dnnl_status_t compile(const PartitionBody& body, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                      dnnl_engine_t engine, dnnl_graph_compiled_partition& result) {
  dnnl_engine_kind_t kind = dnnl_any_engine;
  if (const dnnl_status_t status = kind_of(engine, kind); status != dnnl_success) return status;
  if (body.partition == nullptr || static_cast<int>(kind) != body.engine_kind) return dnnl_invalid_arguments;
  if (!std::all_of(inputs.begin(), inputs.end(), has_layout) || !std::all_of(outputs.begin(), outputs.end(), has_layout))
    return dnnl_invalid_arguments;
  OurEngine ours;
  if (const dnnl_status_t status = lamina_engine_of(engine, ours); status != dnnl_success) return status;
  LaminaCompiled compiled;
  const_lamina_graph_partition_t partition = body.partition.get();
  std::shared_ptr<const PartitionBody> again;
  lamina_status_t status = compile(partition, inputs, outputs, ours.engine, compiled);
  if (status != lamina_success && (contradicts(body, inputs) || contradicts(body, outputs))) {
    again = made_again(body, inputs, outputs);
    if (again != nullptr) partition = again->partition.get();
    if (again != nullptr) status = compile(partition, inputs, outputs, ours.engine, compiled);
  }
  if (status != lamina_success) return status_of(status);
  result.inputs = compiled_ports(partition, compiled.get(), lamina_graph_partition_get_input_ports_num,
                                 lamina_graph_partition_get_input_ports);
  result.outputs = compiled_ports(partition, compiled.get(), lamina_graph_partition_get_output_ports_num,
                                  lamina_graph_partition_get_output_ports);
  result.inplace_pairs = inplace_pairs(body, compiled.get());
  result.compiled = std::move(compiled);
  result.engine = engine;
  return dnnl_success;
}

}  // namespace
}  // namespace onednn_graph

extern "C" {

dnnl_status_t dnnl_graph_partition_create_with_op(dnnl_graph_partition_t* partition, const_dnnl_graph_op_t op,
                                                  dnnl_engine_kind_t ekind) {
  return guarded(
      [&] { return any_null(partition, op) ? dnnl_invalid_arguments : partition_of_op(*op, number_of(ekind), *partition); });
}

dnnl_status_t dnnl_graph_partition_destroy(dnnl_graph_partition_t partition) {
  delete partition;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_op_num(const_dnnl_graph_partition_t partition, size_t* num) {
  if (any_null(partition, num)) return dnnl_invalid_arguments;
  *num = partition->body->ops.size();
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_ops(dnnl_graph_partition_t partition, size_t num, size_t* ids) {
  if (any_null(partition, ids) || partition->body->ops.size() != num) return dnnl_invalid_arguments;
  const auto& ops = partition->body->ops;
  std::transform(ops.begin(), ops.end(), ids, [](const dnnl_graph_op& op) { return op.id; });
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_id(const_dnnl_graph_partition_t partition, size_t* id) {
  if (any_null(partition, id)) return dnnl_invalid_arguments;
  *id = partition->id;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_input_ports_num(const_dnnl_graph_partition_t partition, size_t* num) {
  if (any_null(partition, num)) return dnnl_invalid_arguments;
  *num = partition->body->inputs.size();
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_input_ports(const_dnnl_graph_partition_t partition, size_t num,
                                                   dnnl_graph_logical_tensor_t* inputs) {
  return any_null(partition) ? dnnl_invalid_arguments : copy_ports(partition->body->inputs, num, inputs);
}

dnnl_status_t dnnl_graph_partition_get_output_ports_num(const_dnnl_graph_partition_t partition, size_t* num) {
  if (any_null(partition, num)) return dnnl_invalid_arguments;
  *num = partition->body->outputs.size();
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_output_ports(const_dnnl_graph_partition_t partition, size_t num,
                                                    dnnl_graph_logical_tensor_t* outputs) {
  return any_null(partition) ? dnnl_invalid_arguments : copy_ports(partition->body->outputs, num, outputs);
}

dnnl_status_t dnnl_graph_partition_is_supported(const_dnnl_graph_partition_t partition, uint8_t* is_supported) {
  if (any_null(partition, is_supported)) return dnnl_invalid_arguments;
  *is_supported = partition->body->partition != nullptr ? 1 : 0;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_engine_kind(const_dnnl_graph_partition_t partition, dnnl_engine_kind_t* kind) {
  if (any_null(partition, kind)) return dnnl_invalid_arguments;
  set_number(*kind, partition->body->engine_kind);
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_compile(dnnl_graph_partition_t partition, dnnl_graph_compiled_partition_t compiled_partition,
                                           size_t in_num, const dnnl_graph_logical_tensor_t** inputs, size_t out_num,
                                           const dnnl_graph_logical_tensor_t** outputs, dnnl_engine_t engine) {
  return guarded([&] {
    std::vector<Tensor> in, out;
    if (any_null(partition, compiled_partition, engine) || !read(in_num, inputs, in) || !read(out_num, outputs, out))
      return dnnl_invalid_arguments;
    std::vector<size_t> input_places = ids_of(in), output_places = ids_of(out);
    keep_ports(partition->body->outputs, out);
    const dnnl_status_t status = compile(*partition->body, in, out, engine, *compiled_partition);
    if (status != dnnl_success) return status;
    compiled_partition->input_places = std::move(input_places);
    compiled_partition->output_places = std::move(output_places);
    return dnnl_success;
  });
}

}  // extern "C"
