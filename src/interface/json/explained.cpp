#include "interface/json/explained.h"

#include "interface/json/tree.h"

namespace lamina {
namespace {

using json::Tree;

template <typename Items, typename ToJson>
Tree list(const Items& items, const ToJson& to_json) {
  Tree result = Tree::list();
  for (const auto& item : items) result.push_back(to_json(item));
  return result;
}

Tree tensor_to_json(const ExplainedTensor& tensor) {
  return Tree::object({{"id", tensor.id},
                       {"text", tensor.text},
                       {"layout", tensor.layout},
                       {"property", tensor.property},
                       {"value", tensor.value},
                       {"producer", tensor.producer},
                       {"consumers", tensor.consumers},
                       {"is_output", tensor.is_output}});
}

Tree ports_to_json(const std::vector<ExplainedPort>& ports) {
  return list(ports, [](const ExplainedPort& port) { return Tree::list({port.name, port.tensor}); });
}

Tree op_to_json(const ExplainedOp& op) {
  const auto attribute = [](const auto& entry) { return Tree::list({entry.first, entry.second}); };
  const auto reason = [](const ExplainedReason& r) {
    return Tree::object({{"code", r.code}, {"text", r.text}, {"other_op", Tree(r.other_op)}});
  };
  return Tree::object({{"id", op.id},
                       {"kind", op.kind},
                       {"name", op.name},
                       {"attributes", list(op.attributes, attribute)},
                       {"inputs", ports_to_json(op.inputs)},
                       {"outputs", ports_to_json(op.outputs)},
                       {"reasons", list(op.reasons, reason)},
                       {"partition", op.partition},
                       {"kernels", op.kernels}});
}

Tree times_to_json(const std::optional<ProfiledTimes>& times) {
  if (!times) return nullptr;
  return Tree::object({{"us", times->us}, {"idle_us", times->idle_us}, {"bound_us", times->bound_us}, {"bound", times->bound}});
}

Tree times_to_json(const std::optional<PartitionTimes>& times) {
  if (!times) return nullptr;
  return Tree::object({{"median_us", Tree(times->median_us)},
                       {"gb_per_s", Tree(times->gigabytes_per_second)},
                       {"compile_ms", Tree(times->compile_ms)},
                       {"verdict", times->verdict},
                       {"profiled", times_to_json(times->profiled)}});
}

Tree partition_to_json(const ExplainedPartition& partition) {
  const auto kernel = [](const ExplainedKernel& k) {
    return Tree::object({{"name", k.name}, {"schedule", k.schedule}, {"text", k.text}, {"step", k.step}});
  };
  const auto step = [](const ExplainedStep& s) {
    return Tree::object({{"name", s.name}, {"bytes", s.bytes}, {"flops", s.arithmetic}, {"times", times_to_json(s.times)}});
  };
  const auto tiles = [](const ExplainedTiles& t) { return Tree::object({{"text", t.text}, {"sums", t.sums}, {"ops", t.ops}}); };
  return Tree::object({{"id", partition.id},
                       {"ops", partition.ops},
                       {"supported", partition.supported},
                       {"problem", partition.problem},
                       {"backend", partition.backend},
                       {"kernels", list(partition.kernels, kernel)},
                       {"steps", list(partition.steps, step)},
                       {"tiles", list(partition.tiles, tiles)},
                       {"required_bytes", Tree(partition.required_bytes)},
                       {"moved_bytes", Tree(partition.moved_bytes)},
                       {"workspace_bytes", Tree(partition.workspace_bytes)},
                       {"times", times_to_json(partition.times)}});
}

}  // namespace

std::string explained_to_json(const ExplainedGraph& graph) {
  const Tree told = Tree::object({{"title", graph.title},
                                  {"backend", graph.backend},
                                  {"given_ops", graph.given_ops},
                                  {"compiled", graph.compiled},
                                  {"warnings", graph.warnings},
                                  {"tensors", list(graph.tensors, tensor_to_json)},
                                  {"ops", list(graph.ops, op_to_json)},
                                  {"partitions", list(graph.partitions, partition_to_json)}});
  return told.text(false);
}

}  // namespace lamina
