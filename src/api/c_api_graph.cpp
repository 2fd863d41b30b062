#include "api/boundary.h"
#include "api/convert.h"
#include "api/objects.h"
#include "compiler/partitioning.h"
#include "compiler/verbose.h"

namespace lamina::api {
namespace {

std::unique_ptr<lamina_graph_graph> make_graph(lamina_engine_kind_t engine_kind, lamina_fpmath_mode_t mode) {
  auto created = std::make_unique<lamina_graph_graph>();
  created->id = compiler::next_id();
  created->graph.engine_kind = checked(engine_kind);
  created->graph.fpmath_mode = checked(mode);
  return created;
}

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;

extern "C" {

lamina_status_t lamina_graph_graph_create(lamina_graph_graph_t* graph, lamina_engine_kind_t engine_kind) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    lamina_fpmath_mode_t mode = lamina_fpmath_mode_strict;
    lamina_get_default_fpmath_mode(&mode);
    *graph = make_graph(engine_kind, mode).release();
  });
}

lamina_status_t lamina_graph_graph_create_with_fpmath_mode(lamina_graph_graph_t* graph, lamina_engine_kind_t engine_kind,
                                                           lamina_fpmath_mode_t mode) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    *graph = make_graph(engine_kind, mode).release();
  });
}

lamina_status_t lamina_graph_graph_destroy(lamina_graph_graph_t graph) {
  delete graph;
  return lamina_success;
}

lamina_status_t lamina_graph_graph_set_fpmath_mode(lamina_graph_graph_t graph, lamina_fpmath_mode_t mode, int apply_to_int) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    graph->graph.fpmath_mode = checked(mode);
    graph->graph.fpmath_apply_to_int = apply_to_int != 0;
  });
}

lamina_status_t lamina_graph_graph_get_fpmath_mode(const_lamina_graph_graph_t graph, lamina_fpmath_mode_t* mode,
                                                   int* apply_to_int) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    LAMINA_REQUIRE(mode);
    LAMINA_REQUIRE(apply_to_int);
    *mode = static_cast<lamina_fpmath_mode_t>(graph->graph.fpmath_mode);
    *apply_to_int = graph->graph.fpmath_apply_to_int ? 1 : 0;
  });
}

lamina_status_t lamina_graph_add_op(lamina_graph_graph_t graph, const_lamina_graph_op_t op) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    LAMINA_REQUIRE(op);
    graph->graph.add_op(op->id, op->kind, op->name, op->attributes, op->inputs, op->outputs);
  });
}

lamina_status_t lamina_graph_graph_set_constant(lamina_graph_graph_t graph, size_t tensor_id, double value) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    graph->graph.set_constant(tensor_id, value);
  });
}

lamina_status_t lamina_graph_graph_finalize(lamina_graph_graph_t graph) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    if (!graph->graph.is_finalized()) graph->graph.finalize();
  });
}

lamina_status_t lamina_graph_graph_is_finalized(const_lamina_graph_graph_t graph, uint8_t* finalized) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    LAMINA_REQUIRE(finalized);
    *finalized = graph->graph.is_finalized();
  });
}

lamina_status_t lamina_graph_graph_filter(lamina_graph_graph_t graph, lamina_graph_partition_policy_t policy) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    lamina::compiler::dump_graph(graph->graph, graph->id);
    graph->partitions = lamina::compiler::partition_for_engine(graph->graph, checked(policy), graph->id);
    graph->filtered = true;
  });
}

lamina_status_t lamina_graph_graph_get_partition_num(const_lamina_graph_graph_t graph, size_t* num) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    LAMINA_REQUIRE(num);
    *num = graph->partitions.size();
  });
}

lamina_status_t lamina_graph_graph_get_partitions(lamina_graph_graph_t graph, size_t num,
                                                  lamina_graph_partition_t* partitions) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(graph);
    if (!graph->filtered) {
      throw lamina::Error(
          lamina::Status::invalid_graph,
          lamina::join(function_name, ": the graph has no partitions yet; call lamina_graph_graph_filter first"));
    }
    if (num != graph->partitions.size()) {
      throw lamina::Error(lamina::Status::invalid_arguments, lamina::join(function_name, ": num is ", num, ", the graph has ",
                                                                          graph->partitions.size(), " partitions"));
    }
    if (num > 0) LAMINA_REQUIRE(partitions);
    std::vector<std::unique_ptr<lamina_graph_partition>> created;
    for (const lamina::Partition& partition : graph->partitions) {
      created.push_back(std::make_unique<lamina_graph_partition>(lamina_graph_partition{partition, graph->graph.engine_kind}));
    }
    for (size_t i = 0; i < num; ++i) partitions[i] = created[i].release();
  });
}

}  // extern "C"
