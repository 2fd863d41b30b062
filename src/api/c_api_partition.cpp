#include <algorithm>
#include <cmath>

#include "api/boundary.h"
#include "api/convert.h"
#include "api/objects.h"
#include "compiler/compile.h"
#include "compiler/partitioning.h"
#include "interface/number_text.h"

namespace lamina::api {
namespace {

void require_count(const char* function_name, size_t num, size_t actual, const char* what) {
  if (num != actual) {
    throw Error(Status::invalid_arguments, join(function_name, ": num is ", num, ", the partition has ", actual, " ", what));
  }
}

void copy_ports(const Partition& partition, const std::vector<ValueIndex>& ports, lamina_graph_logical_tensor_t* destination) {
  for (const ValueIndex port : ports) *destination++ = to_c(partition.graph->tensor(port));
}

std::vector<LogicalTensor> tensors_from_c(const char* function_name, size_t num,
                                          const lamina_graph_logical_tensor_t** tensors) {
  std::vector<LogicalTensor> result;
  if (num > 0) LAMINA_REQUIRE(tensors);
  for (size_t i = 0; i < num; ++i) {
    LAMINA_REQUIRE(tensors[i]);
    result.push_back(from_c(*tensors[i]));
  }
  return result;
}

Partition partition_of_op(const lamina_graph_op& op, EngineKind engine_kind) {
  Graph graph;
  graph.engine_kind = engine_kind;
  graph.add_op(op.id, op.kind, op.name, op.attributes, op.inputs, op.outputs);
  graph.finalize();
  std::vector<Partition> partitions = compiler::partition_for_engine(graph, PartitionPolicy::debug, compiler::next_id());
  if (partitions.size() != 1) {
    throw Error(Status::invalid_arguments, join(name_of(op.kind), " \"", op.name, "\" makes ", partitions.size(),
                                                " partitions, allowed is an op that makes one: End makes none"));
  }
  return std::move(partitions.front());
}

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;

extern "C" {

lamina_status_t lamina_graph_partition_create_with_op(lamina_graph_partition_t* partition, const_lamina_graph_op_t op,
                                                      lamina_engine_kind_t engine_kind) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    LAMINA_REQUIRE(op);
    const lamina::EngineKind kind = checked(engine_kind);
    *partition = new lamina_graph_partition{partition_of_op(*op, kind), kind};
  });
}

lamina_status_t lamina_graph_partition_destroy(lamina_graph_partition_t partition) {
  delete partition;
  return lamina_success;
}

lamina_status_t lamina_graph_partition_get_id(const_lamina_graph_partition_t partition, size_t* id) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    LAMINA_REQUIRE(id);
    *id = partition->partition.id;
  });
}

lamina_status_t lamina_graph_partition_get_op_num(const_lamina_graph_partition_t partition, size_t* num) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    LAMINA_REQUIRE(num);
    *num = lamina::op_ids(partition->partition).size();
  });
}

lamina_status_t lamina_graph_partition_get_ops(const_lamina_graph_partition_t partition, size_t num, size_t* ids) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    LAMINA_REQUIRE(ids);
    const std::vector<uint64_t> known = lamina::op_ids(partition->partition);
    require_count(function_name, num, known.size(), "ops");
    std::copy(known.begin(), known.end(), ids);
  });
}

lamina_status_t lamina_graph_partition_is_supported(const_lamina_graph_partition_t partition, uint8_t* is_supported) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    LAMINA_REQUIRE(is_supported);
    *is_supported = partition->partition.supported;
  });
}

lamina_status_t lamina_graph_partition_get_input_ports_num(const_lamina_graph_partition_t partition, size_t* num) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    LAMINA_REQUIRE(num);
    *num = partition->partition.inputs.size();
  });
}

lamina_status_t lamina_graph_partition_get_input_ports(const_lamina_graph_partition_t partition, size_t num,
                                                       lamina_graph_logical_tensor_t* inputs) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    require_count(function_name, num, partition->partition.inputs.size(), "input ports");
    if (num > 0) LAMINA_REQUIRE(inputs);
    copy_ports(partition->partition, partition->partition.inputs, inputs);
  });
}

lamina_status_t lamina_graph_partition_get_output_ports_num(const_lamina_graph_partition_t partition, size_t* num) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    LAMINA_REQUIRE(num);
    *num = partition->partition.outputs.size();
  });
}

lamina_status_t lamina_graph_partition_get_output_ports(const_lamina_graph_partition_t partition, size_t num,
                                                        lamina_graph_logical_tensor_t* outputs) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    require_count(function_name, num, partition->partition.outputs.size(), "output ports");
    if (num > 0) LAMINA_REQUIRE(outputs);
    copy_ports(partition->partition, partition->partition.outputs, outputs);
  });
}

lamina_status_t lamina_graph_partition_get_engine_kind(const_lamina_graph_partition_t partition, lamina_engine_kind_t* kind) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    LAMINA_REQUIRE(kind);
    *kind = static_cast<lamina_engine_kind_t>(partition->engine_kind);
  });
}

lamina_status_t lamina_graph_partition_compile(const_lamina_graph_partition_t partition,
                                               lamina_graph_compiled_partition_t compiled_partition, size_t in_num,
                                               const lamina_graph_logical_tensor_t** inputs, size_t out_num,
                                               const lamina_graph_logical_tensor_t** outputs, const_lamina_engine_t engine) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    LAMINA_REQUIRE(compiled_partition);
    LAMINA_REQUIRE(engine);
    if (compiled_partition->partition_id != partition->partition.id) {
      throw lamina::Error(lamina::Status::invalid_arguments,
                          lamina::join(function_name, ": the compiled partition was created for partition ",
                                       compiled_partition->partition_id, ", not for ", partition->partition.id));
    }
    const auto given_inputs = tensors_from_c(function_name, in_num, inputs);
    const auto given_outputs = tensors_from_c(function_name, out_num, outputs);
    auto compiled = lamina::compiler::compile_partition(partition->partition, given_inputs, given_outputs, *engine->backend,
                                                        nullptr, &engine->allocator);
    std::vector<lamina_graph_inplace_pair_t> pairs;
    for (const auto& [input, output] : compiled->inplace_ports()) pairs.push_back({input, output});
    compiled_partition->inplace_pairs = std::move(pairs);
    compiled_partition->compiled = std::move(compiled);
    compiled_partition->device = engine->device;
  });
}

lamina_status_t lamina_graph_partition_tune(const_lamina_graph_partition_t partition, size_t in_num,
                                            const lamina_graph_logical_tensor_t** inputs, size_t out_num,
                                            const lamina_graph_logical_tensor_t** outputs, const_lamina_engine_t engine,
                                            double milliseconds, size_t* timed) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(partition);
    LAMINA_REQUIRE(engine);
    if (!std::isfinite(milliseconds) || milliseconds < 0) {
      throw lamina::Error(lamina::Status::invalid_arguments,
                          lamina::join(function_name, ": milliseconds is ", lamina::general_text(milliseconds, 6),
                                       ", allowed is a finite number of 0 or more"));
    }
    lamina::TuningRequest request;
    if (milliseconds > 0) request.milliseconds = milliseconds;
    const auto given_inputs = tensors_from_c(function_name, in_num, inputs);
    const auto given_outputs = tensors_from_c(function_name, out_num, outputs);
    const size_t count =
        lamina::compiler::tune_partition(partition->partition, given_inputs, given_outputs, *engine->backend, request);
    if (timed != nullptr) *timed = count;
  });
}

}  // extern "C"
