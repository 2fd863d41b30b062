#include "compiler/explain.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/compile.h"
#include "interface/number_text.h"
#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/core/reasons.h"

namespace lamina::compiler {
namespace {

// ---- reasons

ExplainedReason told(const Reason& reason, const Graph& graph) {
  ExplainedReason result{reason.code, reason.text, std::nullopt};
  if (reason.other_op >= 0) result.other_op = graph.op(reason.other_op).id;
  return result;
}

// The reasons of the fusion that ran, with every shape known, for the op at `index` of the partition; the subgraph has the
// same positions. Null: no fusion ran when the partition was compiled.
const std::vector<Reason>* reasons_of_run(const CompileRecord& record, size_t index) {
  for (const FusionGroup& group : record.groups) {
    const auto found = std::find(group.ops.begin(), group.ops.end(), static_cast<int>(index));
    if (found != group.ops.end()) return &group.reasons[static_cast<size_t>(found - group.ops.begin())];
  }
  return nullptr;
}

// Whether the reason concerns the op alone, or the op and another one of its partition.
bool is_about_partition(const Reason& reason, const Partition& partition) {
  if (reason.other_op < 0) return reason.code == name_of(ReasonCode::anchor);
  return std::binary_search(partition.ops.begin(), partition.ops.end(), reason.other_op);
}

// Replaces the first fusion's reasons inside the partition by those of the fusion that ran.
std::vector<ExplainedReason> reasons_of(const Partition& partition, size_t index, const CompileRecord& record) {
  std::vector<ExplainedReason> result;
  if (index >= partition.reasons.size()) return result;
  const std::vector<Reason>* const of_run = reasons_of_run(record, index);
  bool is_told = false;
  for (const Reason& reason : partition.reasons[index]) {
    if (of_run == nullptr || !is_about_partition(reason, partition)) {
      result.push_back(told(reason, *partition.graph));
    } else if (!is_told) {
      for (const Reason& ran : *of_run) result.push_back(told(ran, record.subgraph.graph));
      is_told = true;
    }
  }
  return result;
}

// ---- ops and tensors

std::vector<ExplainedPort> ports_of(const std::vector<const PortSpec*>& specs, const std::vector<ValueIndex>& values) {
  std::vector<ExplainedPort> ports;
  for (size_t i = 0; i < values.size(); ++i)
    ports.push_back({specs.empty() ? join(i) : specs[std::min(i, specs.size() - 1)]->name, values[i]});
  return ports;
}

ExplainedOp told(const Op& op) {
  ExplainedOp result;
  result.id = op.id;
  result.kind = name_of(op.kind);
  result.name = op.name;
  result.text = describe(op);
  for (const auto& [name, value] : op.attributes) result.attributes.emplace_back(name, to_string(value));
  const OpSchema& schema = schema_of(op.kind);
  result.inputs = ports_of(existing_inputs(schema, op.attributes), op.inputs);
  result.outputs = ports_of(existing_outputs(schema, op.attributes), op.outputs);
  return result;
}

std::string layout_text(const LogicalTensor& tensor) {
  if (tensor.has_strides()) return is_dense(tensor) ? "" : join("strides ", describe(tensor.strides));
  return tensor.layout == LayoutType::undef || tensor.layout == LayoutType::strided ? ""
                                                                                    : join("layout ", name_of(tensor.layout));
}

ExplainedTensor told(const Value& value) {
  const LogicalTensor& tensor = value.tensor;
  ExplainedTensor result;
  result.id = tensor.id;
  result.text = describe(tensor);
  result.layout = layout_text(tensor);
  if (tensor.property != PropertyType::undef) result.property = name_of(tensor.property);
  if (value.constant) result.value = general_text(*value.constant, 9);
  return result;
}

// The result lists ops partition by partition: maps an op's position in the graph to its position in the result.
using Places = std::map<int, size_t>;

// Adds all values of the graph, with the producers and consumers that the given partitions contain.
void add_tensors(ExplainedGraph& result, const Graph& graph, const Places& place) {
  for (const Value& value : graph.values()) {
    ExplainedTensor& tensor = result.tensors.emplace_back(told(value));
    if (const auto maker = place.find(value.producer.op); maker != place.end())
      tensor.producer = static_cast<int>(maker->second);
    std::set<size_t> readers;
    for (const Port& consumer : value.consumers) {
      const auto reader = place.find(consumer.op);
      if (reader != place.end()) readers.insert(reader->second);
      tensor.is_output = tensor.is_output || (reader == place.end() && tensor.producer >= 0);  // read elsewhere
    }
    tensor.consumers.assign(readers.begin(), readers.end());
  }
  for (const ValueIndex output : graph.outputs()) result.tensors[static_cast<size_t>(output)].is_output = true;
}

// ---- what was compiled

// How many kernels, from number `first` on, a step runs: its name ends with their names.
size_t kernels_of(const StepWork& step, const std::vector<std::string>& kernels, size_t first) {
  size_t count = 0;
  std::string names;
  for (size_t i = first; i < kernels.size() && names.size() < step.name.size(); ++i) {
    names += (i == first ? "" : " + ") + kernels[i];
    if (step.name.ends_with(names)) count = i - first + 1;
  }
  return count;
}

void add_kernels(ExplainedPartition& result, const ExecutableInfo& info) {
  std::vector<int> measured;  // per kernel: its step
  for (const StepWork& work : info.steps) {
    measured.insert(measured.end(), kernels_of(work, info.kernels, measured.size()), static_cast<int>(result.steps.size()));
    result.steps.push_back({work.name, work.bytes, work.arithmetic});
  }
  for (size_t i = 0; i < info.kernels.size(); ++i) {
    const size_t step = info.step_of_kernel.empty() ? i : info.step_of_kernel[i];
    const bool is_first = i == 0 || info.step_of_kernel.empty() || info.step_of_kernel[i - 1] != step;
    result.kernels.push_back({info.kernels[i], step < info.schedules.size() ? info.schedules[step] : "",
                              is_first && step < info.kernel_texts.size() ? info.kernel_texts[step] : "",
                              i < measured.size() ? measured[i] : -1});
  }
}

// What the tiles accumulate into, and in which order.
std::string sums_text(const Graph& graph, const TileRegion& region) {
  if (region.sums.empty()) return "";
  std::string text = "summed over tiles:";
  for (const auto& [value, loop] : region.sums) {
    const bool by_rows = static_cast<size_t>(loop) == region.row_loop();
    text += join(' ', describe(graph.op(graph.value(value).producer.op)), by_rows ? " (rows)" : " (columns)");
  }
  return join(text, "; a thread adds ", region.segments > 1 ? join("1 of ", region.segments, " parts of ") : "all ",
              "the rows of an entry in order, in f32");
}

std::string tiles_text(const TileRegion& region, const CompileRecord& record) {
  const int64_t tiles = region.tiles();
  std::string text = join("tiled: ", tiles, tiles == 1 ? " tile" : " tiles", " of ", region.rows, " rows");
  if (region.columns > 0) text += join(" and ", region.columns, " columns");
  text += ", one thread runs each through";
  for (const size_t group : region.groups)
    for (const int op : record.groups[group].ops) text += join(' ', describe(record.subgraph.graph.op(op)));
  return join(text, "; between these ", region.bytes, " bytes stay in its caches");
}

// The ops of some groups by their positions in the explained graph.
std::vector<size_t> ops_of(const ExplainedPartition& partition, const CompileRecord& record,
                           const std::vector<size_t>& groups) {
  std::set<size_t> ops;
  for (const size_t group : groups)
    for (const int op : record.groups[group].ops) ops.insert(partition.ops[static_cast<size_t>(op)]);
  return {ops.begin(), ops.end()};
}

// Which of the partition's ops run tile by tile, and which products do not, with the reason.
void add_tiles(ExplainedPartition& result, const CompileRecord& record) {
  for (const TileRegion& region : record.regions) {
    if (!region.why_not.empty()) {
      const Op& product = record.subgraph.graph.op(record.groups[region.groups.front()].ops.front());
      result.tiles.push_back({join("not tiled: ", describe(product), ", ", region.why_not), ""});
    }
    if (region.rows > 0)
      result.tiles.push_back(
          {tiles_text(region, record), sums_text(record.subgraph.graph, region), ops_of(result, record, region.groups)});
  }
}

// Assigns kernels to the ops of the partition.
void tell_kernels_apart(ExplainedGraph& graph, const ExplainedPartition& partition, const ExecutableInfo& info,
                        const CompileRecord& record) {
  for (size_t k = 0; k < info.kernels.size(); ++k) {
    const size_t step = info.step_of_kernel.empty() ? k : info.step_of_kernel[k];
    if (step >= record.ops_of_steps.size()) continue;  // a backend that runs graphs
    for (const int op : record.ops_of_steps[step]) {
      const auto position = static_cast<size_t>(op);
      if (position < partition.ops.size()) graph.ops[partition.ops[position]].kernels.push_back(k);
    }
  }
}

// Compiles the partition, so that the explanation describes the code that runs. The record stays empty if there is nothing to
// compile.
void add_code(ExplainedGraph& graph, ExplainedPartition& result, const Partition& partition,
              const std::optional<PortTensors>& ports, const Backend& backend, CompileRecord& record) {
  try {
    const PortTensors given = ports ? *ports : known_ports(partition);
    const auto compiled = compile_partition(partition, given.inputs, given.outputs, backend, &record);
    const ExecutableInfo& info = compiled->info();
    result.backend = info.backend;
    result.required_bytes = info.required_bytes;
    result.moved_bytes = info.moved_bytes;
    result.workspace_bytes = static_cast<int64_t>(info.workspace_bytes);
    add_kernels(result, info);
    tell_kernels_apart(graph, result, info, record);
    add_tiles(result, record);
  } catch (const Error& error) {
    if (error.status() == Status::out_of_memory) throw;
    result.problem = join("it cannot be compiled: ", error.what());
  }
}

std::string ops_text(const Partition& partition) {
  std::string text;
  for (const int op : partition.ops) text += (text.empty() ? "" : " + ") + describe(partition.graph->op(op));
  return text;
}

void require_one_graph(std::span<const Partition> partitions) {
  if (partitions.empty()) throw Error(Status::invalid_arguments, "explain: there are no partitions, allowed is one or more");
  for (const Partition& partition : partitions)
    if (partition.graph != partitions.front().graph)
      throw Error(Status::invalid_arguments, join("explain: partition ", partition.id, " and partition ", partitions.front().id,
                                                  " belong to different graphs, allowed are partitions of one graph"));
}

}  // namespace

ExplainedGraph explain(std::span<const Partition> partitions, std::span<const std::optional<PortTensors>> ports,
                       const Backend& backend, const ExplainOptions& options) {
  require_one_graph(partitions);
  const Graph& graph = *partitions.front().graph;
  ExplainedGraph result;
  result.backend = backend.name();
  result.compiled = options.compile;
  result.warnings = graph.warnings();
  Places place;
  for (size_t p = 0; p < partitions.size(); ++p) {
    const Partition& partition = partitions[p];
    ExplainedPartition explained;
    explained.id = partition.id;
    explained.label = label_of(partition);
    explained.ops_text = ops_text(partition);
    explained.user_ops = op_ids(partition);
    explained.supported = partition.supported;
    explained.problem = partition.unsupported_reason;
    for (const int op : partition.ops) {
      explained.ops.push_back(result.ops.size());
      place[op] = result.ops.size();
      result.ops.push_back(told(graph.op(op)));
      result.ops.back().partition = p;
    }
    if (options.progress) options.progress(p);
    CompileRecord record;
    if (options.compile && partition.supported)
      add_code(result, explained, partition, ports.empty() ? std::nullopt : ports[p], backend, record);
    for (size_t i = 0; i < partition.ops.size(); ++i) result.ops[explained.ops[i]].reasons = reasons_of(partition, i, record);
    result.given_ops += explained.user_ops.size();
    result.partitions.push_back(std::move(explained));
  }
  add_tensors(result, graph, place);
  return result;
}

}  // namespace lamina::compiler
