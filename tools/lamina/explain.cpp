#include "lamina/explain.h"

#include <algorithm>
#include <iostream>

#include "compiler/compile.h"
#include "interface/status.h"
#include "lamina/load.h"
#include "passes/pipeline.h"
#include "passes/reasons.h"

namespace lamina::driver {
namespace {

void print_indented(const std::string& text, const char* indent) {
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    std::cout << indent << text.substr(start, end - start) << '\n';
    start = end + 1;
  }
}

// Compiles the partition, so that what is told is what runs. The record is empty where there is nothing to compile.
void print_kernels(const Partition& partition, const Backend& backend, bool texts, compiler::CompileRecord& record) {
  if (!partition.supported) {
    std::cout << "  kernel: none, " << partition.unsupported_reason << '\n';
    return;
  }
  try {
    const auto compiled = compiler::compile_partition(partition, backend, &record);
    const ExecutableInfo& info = compiled->info();
    for (size_t i = 0; i < info.kernels.size(); ++i) {
      const size_t step = info.step_of_kernel.empty() ? i : info.step_of_kernel[i];
      const bool is_first = i == 0 || info.step_of_kernel.empty() || info.step_of_kernel[i - 1] != step;
      const bool has_schedule = step < info.schedules.size() && !info.schedules[step].empty();
      const std::string schedule = has_schedule ? join(" (", info.schedules[step], ")") : "";
      std::cout << "  kernel: " << info.kernels[i] << schedule << '\n';
      if (texts && is_first && step < info.kernel_texts.size()) print_indented(info.kernel_texts[step], "    ");
    }
    if (info.kernels.empty()) std::cout << "  kernel: none, nothing is computed\n";
  } catch (const Error& error) {
    std::cout << "  kernel: none, it cannot be compiled: " << error.what() << '\n';
  }
}

// What tiles add to, in which order.
void print_sums(const Graph& graph, const TileRegion& region) {
  if (region.sums.empty()) return;
  std::cout << "    summed over tiles:";
  for (const auto& [value, loop] : region.sums) {
    const bool by_rows = static_cast<size_t>(loop) == region.row_loop();
    std::cout << ' ' << describe(graph.op(graph.value(value).producer.op)) << (by_rows ? " (rows)" : " (columns)");
  }
  std::cout << "; a thread takes " << (region.segments > 1 ? join("1 of ", region.segments, " parts of ") : "all ")
            << "the rows of an entry in their order, in f32\n";
}

// Which of the partition's ops run tile after tile, and which products do not, and why.
void print_tiles(const compiler::CompileRecord& record) {
  for (const TileRegion& region : record.regions) {
    if (!region.why_not.empty()) {
      const Op& product = record.subgraph.graph.op(record.groups[region.groups.front()].ops.front());
      std::cout << "  not tiled: " << describe(product) << ", " << region.why_not << '\n';
    }
    if (region.rows == 0) continue;
    const int64_t tiles = region.tiles();
    std::cout << "  tiled: " << tiles << (tiles == 1 ? " tile" : " tiles") << " of " << region.rows << " rows";
    if (region.columns > 0) std::cout << " and " << region.columns << " columns";
    std::cout << ", one thread takes each through";
    for (const size_t group : region.groups) {
      for (const int op : record.groups[group].ops) std::cout << ' ' << describe(record.subgraph.graph.op(op));
    }
    std::cout << "; between these " << region.bytes << " bytes stay in its caches\n";
    print_sums(record.subgraph.graph, region);
  }
}

std::string tensors(const Graph& graph, const std::vector<ValueIndex>& values) {
  std::string text;
  for (const ValueIndex value : values) {
    if (!text.empty()) text += ", ";
    text += value == kNoValue ? "none" : join(graph.tensor(value).id, " ", describe(graph.tensor(value)));
  }
  return text.empty() ? "none" : text;
}

void print_reason(const Reason& reason, const Graph& graph) {
  std::cout << "    [" << reason.code << "] " << reason.text;
  if (reason.other_op >= 0) std::cout << " (op " << graph.ops()[static_cast<size_t>(reason.other_op)].id << ')';
  std::cout << '\n';
}

// Of the ops of one partition among themselves the fusion that runs decides, with every shape known: the op's place in the
// subgraph is its place in the partition. Null: nothing was fused when the partition was compiled.
const std::vector<Reason>* reasons_of_run(const compiler::CompileRecord& record, size_t index) {
  for (const FusionGroup& group : record.groups) {
    const auto found = std::find(group.ops.begin(), group.ops.end(), static_cast<int>(index));
    if (found != group.ops.end()) return &group.reasons[static_cast<size_t>(found - group.ops.begin())];
  }
  return nullptr;
}

// A reason about the op alone, or about it and another of its partition.
bool is_about_partition(const Reason& reason, const Partition& partition) {
  if (reason.other_op < 0) return reason.code == name_of(ReasonCode::anchor);
  return std::binary_search(partition.ops.begin(), partition.ops.end(), reason.other_op);
}

// What the first fusion decided inside the partition is told as the one that runs decided it, once.
void print_reasons(const Partition& partition, size_t index, const compiler::CompileRecord& record) {
  const std::vector<Reason>* const of_run = reasons_of_run(record, index);
  bool told = false;
  for (const Reason& reason : partition.reasons[index]) {
    if (of_run == nullptr || !is_about_partition(reason, partition)) {
      print_reason(reason, *partition.graph);
    } else if (!told) {
      for (const Reason& ran : *of_run) print_reason(ran, record.subgraph.graph);
      told = true;
    }
  }
}

void print_op(const Partition& partition, size_t index, const compiler::CompileRecord& record) {
  const Graph& graph = *partition.graph;
  const Op& op = graph.ops()[static_cast<size_t>(partition.ops[index])];
  std::cout << "  op " << op.id << ' ' << describe(op) << ": " << tensors(graph, op.inputs) << " -> "
            << tensors(graph, op.outputs) << '\n';
  if (index < partition.reasons.size()) print_reasons(partition, index, record);
}

}  // namespace

int explain(const ExplainOptions& options) {
  const Backend& backend = backend_for(options.engine, options.device);
  const Graph graph = load_graph(options.file, options.overrides);
  const auto policy = options.policy == "debug" ? PartitionPolicy::debug : PartitionPolicy::fusion;
  const std::vector<Partition> partitions = partition_graph(graph, policy, backend);

  size_t op_count = 0;
  for (const Partition& partition : partitions) op_count += partition.ops.size();
  std::cout << options.file << ": " << graph.ops().size() << " ops, " << op_count << " in canonical form, " << partitions.size()
            << (partitions.size() == 1 ? " partition" : " partitions") << ", backend " << backend.name() << '\n';
  for (const std::string& warning : graph.warnings()) std::cout << "warning: " << warning << '\n';
  for (const Partition& partition : partitions) {
    std::cout << "\npartition " << partition.id << ": " << describe_ops(partition) << '\n';
    compiler::CompileRecord record;
    print_kernels(partition, backend, options.kernel_texts, record);
    print_tiles(record);
    for (size_t i = 0; i < partition.ops.size(); ++i) print_op(partition, i, record);
  }
  return 0;
}

}  // namespace lamina::driver
