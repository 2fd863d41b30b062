#include "graph.h"

#include <graph/lamina.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "boundary.h"
#include "vocabulary.h"

namespace onednn_graph {
namespace {

using Tensor = dnnl_graph_logical_tensor_t;
using Body = std::shared_ptr<const PartitionBody>;

lamina_fpmath_mode_t lamina_mode(int mode) {
  return mode > 0 && mode <= lamina_fpmath_mode_tf32 ? static_cast<lamina_fpmath_mode_t>(mode) : lamina_fpmath_mode_strict;
}

// Builds and finalizes lamina's graph of these operations; if it is null, `status` has the reason.
LaminaGraph lamina_graph(const dnnl_graph_graph& graph, const std::vector<dnnl_graph_op>& ops, Shapes shapes,
                         lamina_status_t& status) {
  lamina_graph_graph_t made = nullptr;
  status = lamina_graph_graph_create_with_fpmath_mode(&made, lamina_cpu, lamina_mode(graph.fpmath_mode));
  LaminaGraph owned(made);
  if (status == lamina_success)
    status = lamina_graph_graph_set_fpmath_mode(made, lamina_mode(graph.fpmath_mode), graph.fpmath_applies_to_int ? 1 : 0);
  for (const dnnl_graph_op& op : ops) {
    if (status != lamina_success) return nullptr;
    const LaminaOp ours = lamina_op(op, shapes);
    status = ours == nullptr ? lamina_invalid_graph_op : lamina_graph_add_op(made, ours.get());
  }
  if (status == lamina_success) status = lamina_graph_graph_finalize(made);
  return status == lamina_success ? std::move(owned) : nullptr;
}

// The same with as much shape information as lamina accepts.
LaminaGraph lamina_graph(const dnnl_graph_graph& graph, const std::vector<dnnl_graph_op>& ops, lamina_status_t& status) {
  LaminaGraph result;
  for (const Shapes shapes : kAllShapes) {
    result = lamina_graph(graph, ops, shapes, status);
    if (result != nullptr || status == lamina_out_of_memory) break;
  }
  return result;
}

bool all_ports_agree(const std::vector<dnnl_graph_op>& ops) {
  std::unordered_map<size_t, const Tensor*> known;
  const auto agrees = [&](const Tensor& tensor) {
    return are_equal(*known.try_emplace(tensor.id, &tensor).first->second, tensor);
  };
  return std::all_of(ops.begin(), ops.end(), [&](const dnnl_graph_op& op) {
    return std::all_of(op.inputs.begin(), op.inputs.end(), agrees) && std::all_of(op.outputs.begin(), op.outputs.end(), agrees);
  });
}

// ---- lamina's partitions in oneDNN's form: no partition contains End, and an unsupported op is a partition of its own ----

class Bodies {
 public:
  explicit Bodies(const dnnl_graph_graph& graph) : graph_(graph) {
    for (const dnnl_graph_op& op : graph.ops) {
      ops_[op.id] = &op;
      for (const Tensor& output : op.outputs) producers_[output.id] = op.id;
      for (const auto* const ports : {&op.inputs, &op.outputs})
        for (const Tensor& tensor : *ports) tensors_.emplace(tensor.id, &tensor);
    }
  }

  void add(LaminaPartition partition) {
    uint8_t is_supported = 0;
    lamina_graph_partition_is_supported(partition.get(), &is_supported);
    std::vector<dnnl_graph_op> ops = ops_of(partition.get());
    if (is_supported == 0) {
      for (const dnnl_graph_op& op : ops) put(op.id, unsupported(graph_.engine_kind, op));
    } else if (!ops.empty()) {
      auto body = std::make_shared<PartitionBody>();
      body->engine_kind = graph_.engine_kind;
      body->fpmath_mode = graph_.fpmath_mode;
      body->fpmath_applies_to_int = graph_.fpmath_applies_to_int;
      body->inputs = inputs_of(ops);
      body->outputs = outputs_of(partition.get());
      body->partition = std::move(partition);
      body->ops = std::move(ops);
      bodies_.push_back(body);
      for (const dnnl_graph_op& op : body->ops) places_[op.id] = bodies_.size();
    }
  }

  // Inserts the ops that are in no partition; an End follows its producer.
  std::vector<Body> finished() {
    for (const dnnl_graph_op& op : graph_.ops) {
      if (places_.count(op.id) != 0) continue;
      size_t place = bodies_.size();
      if (op.kind == dnnl_graph_op_end && !op.inputs.empty()) {
        const auto producer = producers_.find(op.inputs[0].id);
        if (producer != producers_.end() && places_.count(producer->second) != 0) place = places_[producer->second];
      }
      bodies_.insert(bodies_.begin() + static_cast<std::ptrdiff_t>(place), unsupported(graph_.engine_kind, op));
      for (auto& [id, other] : places_) other += other > place ? 1 : 0;
      places_[op.id] = place + 1;
    }
    return std::move(bodies_);
  }

 private:
  void put(size_t op_id, Body body) {
    bodies_.push_back(std::move(body));
    places_[op_id] = bodies_.size();
  }

  std::vector<dnnl_graph_op> ops_of(const_lamina_graph_partition_t partition) const {
    size_t num = 0;
    lamina_graph_partition_get_op_num(partition, &num);
    std::vector<size_t> ids(num);
    lamina_graph_partition_get_ops(partition, num, ids.data());
    std::vector<dnnl_graph_op> result;
    for (const size_t id : ids)
      if (const dnnl_graph_op& op = *ops_.at(id); op.kind != dnnl_graph_op_end) result.push_back(op);
    return result;
  }

  // One port per read of a tensor that the partition does not produce: a tensor that is read twice has two ports.
  std::vector<Tensor> inputs_of(const std::vector<dnnl_graph_op>& ops) const {
    const auto is_made = [&](const Tensor& tensor) {
      const auto producer = producers_.find(tensor.id);
      return producer != producers_.end() &&
             std::any_of(ops.begin(), ops.end(), [&](const dnnl_graph_op& op) { return op.id == producer->second; });
    };
    std::vector<Tensor> result;
    for (const dnnl_graph_op& op : ops)
      std::copy_if(op.inputs.begin(), op.inputs.end(), std::back_inserter(result), std::not_fn(is_made));
    return result;
  }

  std::vector<Tensor> outputs_of(const_lamina_graph_partition_t partition) const {
    size_t num = 0;
    lamina_graph_partition_get_output_ports_num(partition, &num);
    std::vector<lamina_graph_logical_tensor_t> ports(num);
    lamina_graph_partition_get_output_ports(partition, num, ports.data());
    std::vector<Tensor> result;
    for (const lamina_graph_logical_tensor_t& port : ports) {
      const auto described = tensors_.find(port.id);
      result.push_back(described == tensors_.end() ? onednn_tensor(port) : *described->second);
    }
    return result;
  }

  const dnnl_graph_graph& graph_;
  std::unordered_map<size_t, const dnnl_graph_op*> ops_;
  std::unordered_map<size_t, size_t> producers_;  // by the tensor's id
  std::unordered_map<size_t, const Tensor*> tensors_;
  std::unordered_map<size_t, size_t> places_;  // by the operation's id: one more than the index of its body
  std::vector<Body> bodies_;
};

}  // namespace

Body unsupported(int engine_kind, const dnnl_graph_op& op) {
  auto body = std::make_shared<PartitionBody>();
  body->engine_kind = engine_kind;
  body->ops = {op};
  body->inputs = op.inputs;
  body->outputs = op.outputs;
  return body;
}

dnnl_status_t add_op(dnnl_graph_graph& graph, const dnnl_graph_op& op) {
  if (graph.op_ids.count(op.id) != 0) return dnnl_success;  // oneDNN silently keeps the first one
  lamina_status_t status = lamina_success;
  if (op.outputs.size() == 1 && op.inputs.size() == 1 && op.inputs[0].id == op.outputs[0].id) {
    // A cycle of one operation: oneDNN accepts the operation and rejects the graph.
  } else if (lamina_graph(graph, {op}, status) == nullptr) {
    return status == lamina_out_of_memory ? dnnl_out_of_memory : dnnl_invalid_graph_op;
  }
  graph.ops.push_back(op);
  graph.op_ids.insert(op.id);
  return dnnl_success;
}

dnnl_status_t finalize(dnnl_graph_graph& graph) {
  if (graph.finalized != nullptr) return dnnl_success;
  if (!all_ports_agree(graph.ops)) return dnnl_invalid_graph;
  lamina_status_t status = lamina_success;
  graph.finalized = lamina_graph(graph, graph.ops, status);
  if (graph.finalized != nullptr) return dnnl_success;
  return status == lamina_out_of_memory ? dnnl_out_of_memory : dnnl_invalid_graph;
}

dnnl_status_t filter(dnnl_graph_graph& graph, int policy) {
  const bool is_debug = policy == dnnl_graph_partition_policy_debug;
  lamina_graph_graph_t const ours = graph.finalized.get();
  lamina_status_t status =
      lamina_graph_graph_filter(ours, is_debug ? lamina_graph_partition_policy_debug : lamina_graph_partition_policy_fusion);
  size_t num = 0;
  if (status == lamina_success) status = lamina_graph_graph_get_partition_num(ours, &num);
  std::vector<lamina_graph_partition_t> partitions(num);
  if (status == lamina_success && num > 0) status = lamina_graph_graph_get_partitions(ours, num, partitions.data());
  if (status != lamina_success) return status_of(status);
  std::vector<LaminaPartition> owned(partitions.begin(), partitions.end());
  Bodies bodies(graph);
  for (LaminaPartition& partition : owned) bodies.add(std::move(partition));
  graph.partitions = bodies.finished();
  return dnnl_success;
}

}  // namespace onednn_graph

using namespace onednn_graph;

extern "C" {

dnnl_status_t dnnl_graph_graph_create_with_fpmath_mode(dnnl_graph_graph_t* graph, dnnl_engine_kind_t engine_kind,
                                                       dnnl_fpmath_mode_t mode) {
  return guarded([&] {
    if (any_null(graph)) return dnnl_invalid_arguments;
    auto made = std::make_unique<dnnl_graph_graph>();
    made->engine_kind = number_of(engine_kind);
    made->fpmath_mode = number_of(mode);
    *graph = made.release();
    return dnnl_success;
  });
}

dnnl_status_t dnnl_graph_graph_create(dnnl_graph_graph_t* graph, dnnl_engine_kind_t engine_kind) {
  dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_strict;
  dnnl_get_default_fpmath_mode(&mode);
  return dnnl_graph_graph_create_with_fpmath_mode(graph, engine_kind, mode);
}

dnnl_status_t dnnl_graph_graph_destroy(dnnl_graph_graph_t graph) {
  delete graph;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_set_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t mode, int apply_to_int) {
  if (any_null(graph)) return dnnl_invalid_arguments;
  if (graph->finalized != nullptr) return dnnl_invalid_graph;
  graph->fpmath_mode = number_of(mode);
  graph->fpmath_applies_to_int = apply_to_int != 0;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_get_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t* mode, int* apply_to_int) {
  if (any_null(graph)) return dnnl_invalid_arguments;
  if (graph->finalized != nullptr) return dnnl_invalid_graph;
  if (mode != nullptr) set_number(*mode, graph->fpmath_mode);
  if (apply_to_int != nullptr) *apply_to_int = graph->fpmath_applies_to_int ? 1 : 0;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_set_deterministic(dnnl_graph_graph_t graph, int deterministic) {
  if (any_null(graph)) return dnnl_invalid_arguments;
  if (graph->finalized != nullptr) return dnnl_invalid_graph;
  graph->deterministic = deterministic != 0;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_get_deterministic(const_dnnl_graph_graph_t graph, int* deterministic) {
  if (any_null(graph, deterministic)) return dnnl_invalid_arguments;
  *deterministic = graph->deterministic ? 1 : 0;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_add_op(dnnl_graph_graph_t graph, dnnl_graph_op_t op) {
  return guarded([&] {
    if (any_null(graph, op)) return dnnl_invalid_arguments;
    return graph->finalized != nullptr ? dnnl_invalid_graph : add_op(*graph, *op);
  });
}

dnnl_status_t dnnl_graph_graph_finalize(dnnl_graph_graph_t graph) {
  return guarded([&] { return any_null(graph) ? dnnl_invalid_arguments : finalize(*graph); });
}

dnnl_status_t dnnl_graph_graph_is_finalized(dnnl_graph_graph_t graph, uint8_t* finalized) {
  if (any_null(graph, finalized)) return dnnl_invalid_arguments;
  *finalized = graph->finalized != nullptr ? 1 : 0;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_filter(dnnl_graph_graph_t graph, dnnl_graph_partition_policy_t policy) {
  return guarded(
      [&] { return any_null(graph) || graph->finalized == nullptr ? dnnl_invalid_graph : filter(*graph, number_of(policy)); });
}

dnnl_status_t dnnl_graph_graph_get_partition_num(const_dnnl_graph_graph_t graph, size_t* num) {
  if (any_null(graph)) return dnnl_invalid_graph;
  if (any_null(num)) return dnnl_invalid_arguments;
  *num = graph->partitions.size();
  return dnnl_success;
}

// If the client requests more handles than there are partitions, the rest are empty, unsupported partitions.
dnnl_status_t dnnl_graph_graph_get_partitions(dnnl_graph_graph_t graph, size_t num, dnnl_graph_partition_t* partitions) {
  return guarded([&] {
    if (any_null(graph, partitions) || num == 0) return dnnl_invalid_graph;
    if (num < graph->partitions.size()) return dnnl_invalid_arguments;
    std::vector<std::unique_ptr<dnnl_graph_partition>> made;
    for (const Body& body : graph->partitions) made.push_back(make_partition(body));
    while (made.size() < num) made.push_back(make_partition(std::make_shared<PartitionBody>()));
    std::transform(made.begin(), made.end(), partitions, [](auto& partition) { return partition.release(); });
    return dnnl_success;
  });
}

}  // extern "C"
