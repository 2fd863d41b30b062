#include "interface/json/explained.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "interface/json/tree.h"
#include "interface/status.h"

namespace lamina {
namespace {

using Json = nlohmann::ordered_json;  // for reading reports
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

Tree times_to_json(const std::optional<PartitionTimes>& times) {
  if (!times) return nullptr;
  return Tree::object({{"median_us", Tree(times->median_us)},
                       {"gb_per_s", Tree(times->gigabytes_per_second)},
                       {"compile_ms", Tree(times->compile_ms)},
                       {"verdict", times->verdict}});
}

Tree partition_to_json(const ExplainedPartition& partition) {
  const auto kernel = [](const ExplainedKernel& k) {
    return Tree::object({{"name", k.name}, {"schedule", k.schedule}, {"text", k.text}});
  };
  const auto tiles = [](const ExplainedTiles& t) { return Tree::object({{"text", t.text}, {"sums", t.sums}, {"ops", t.ops}}); };
  return Tree::object({{"id", partition.id},
                       {"ops", partition.ops},
                       {"supported", partition.supported},
                       {"problem", partition.problem},
                       {"backend", partition.backend},
                       {"kernels", list(partition.kernels, kernel)},
                       {"tiles", list(partition.tiles, tiles)},
                       {"required_bytes", Tree(partition.required_bytes)},
                       {"moved_bytes", Tree(partition.moved_bytes)},
                       {"workspace_bytes", Tree(partition.workspace_bytes)},
                       {"times", times_to_json(partition.times)}});
}

// ---- reports

[[noreturn]] void fail_report(const std::string& name, const std::string& what) {
  throw Error(Status::invalid_arguments, join(name, ": ", what));
}

const Json& member(const Json& object, const char* key, const std::string& name) {
  if (!object.is_object() || !object.contains(key))
    fail_report(name, join("is not a report of `lamina replay --report`: it lacks \"", key, "\""));
  return object[key];
}

const Json& report_of_file(const Json& files, const std::string& name, const std::string& file) {
  if (!files.is_array() || files.empty()) fail_report(name, "is a report without files");
  if (files.size() == 1) return files.front();
  std::string listed;
  for (const Json& entry : files) {
    const Json& given = member(entry, "file", name);
    if (given == file) return entry;
    listed += (listed.empty() ? "" : ", ") + given.dump();
  }
  fail_report(name, join("is a report of several files, but not of \"", file, "\", allowed is one of ", listed));
}

std::optional<double> number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

PartitionTimes times_of(const Json& partition) {
  PartitionTimes times{number(partition, "median_us"), number(partition, "gb_per_s"), number(partition, "compile_ms"), ""};
  const auto check = partition.find("check");
  if (check != partition.end() && check->is_object()) times.verdict = check->value("good", false) ? "ok" : "wrong";
  const auto problem = partition.find("problem");
  if (problem != partition.end() && problem->is_string()) times.verdict = problem->get<std::string>();
  return times;
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

void add_report_times(ExplainedGraph& graph, std::string_view report, const std::string& name, const std::string& file) {
  const Json json = Json::parse(report, nullptr, false);
  if (json.is_discarded()) fail_report(name, "is not JSON");
  const Json& partitions = member(report_of_file(member(json, "files", name), name, file), "partitions", name);
  if (!partitions.is_array()) fail_report(name, "is not a report of `lamina replay --report`: \"partitions\" is not a list");
  if (partitions.size() != graph.partitions.size())
    fail_report(name, join("is a report of ", partitions.size(), " partitions, the graph has ", graph.partitions.size(),
                           ": allowed is one of the same graph, engine and policy"));
  for (size_t i = 0; i < graph.partitions.size(); ++i) {
    if (member(partitions[i], "ops", name) != Json(graph.partitions[i].user_ops))
      fail_report(name, join("its partition ", i,
                             " has other ops than the graph's: allowed is a report of the same graph, engine "
                             "and policy"));
    graph.partitions[i].times = times_of(partitions[i]);
  }
}

}  // namespace lamina
