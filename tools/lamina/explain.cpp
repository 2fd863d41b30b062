#include "lamina/explain.h"

#include <iostream>

#include "interface/status.h"
#include "lamina/load.h"

namespace lamina::driver {
namespace {

void print_indented(const std::string& text, const char* indent) {
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    std::cout << indent << text.substr(start, end - start) << '\n';
    start = end + 1;
  }
}

void print_kernels(const Partition& partition, const Backend& backend, bool texts) {
  if (!partition.supported) {
    std::cout << "  kernel: none, " << partition.unsupported_reason << '\n';
    return;
  }
  try {
    const ExecutableInfo info = compile_partition(partition, backend).executable->info();
    for (size_t i = 0; i < info.kernels.size(); ++i) {
      const std::string schedule = i < info.schedules.size() ? join(" (", info.schedules[i], ")") : "";
      std::cout << "  kernel: " << info.kernels[i] << schedule << '\n';
      if (texts && i < info.kernel_texts.size()) print_indented(info.kernel_texts[i], "    ");
    }
    if (info.kernels.empty()) std::cout << "  kernel: none, nothing is computed\n";
  } catch (const Error& error) {
    std::cout << "  kernel: none, it cannot be compiled: " << error.what() << '\n';
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

void print_op(const Partition& partition, size_t index) {
  const Graph& graph = *partition.graph;
  const Op& op = graph.ops()[static_cast<size_t>(partition.ops[index])];
  std::cout << "  op " << op.id << ' ' << describe(op) << ": " << tensors(graph, op.inputs) << " -> "
            << tensors(graph, op.outputs) << '\n';
  if (index >= partition.reasons.size()) return;
  for (const Reason& reason : partition.reasons[index]) {
    std::cout << "    [" << reason.code << "] " << reason.text;
    if (reason.other_op >= 0) std::cout << " (op " << graph.ops()[static_cast<size_t>(reason.other_op)].id << ')';
    std::cout << '\n';
  }
}

}  // namespace

int explain(const ExplainOptions& options) {
  const Backend& backend = backend_for(options.engine, options.device);
  const Graph graph = load_graph(options.file, options.overrides);
  const auto policy = options.policy == "debug" ? PartitionPolicy::debug : PartitionPolicy::fusion;
  const std::vector<Partition> partitions = partition_graph(graph, policy, BackendCapabilities(backend));

  size_t op_count = 0;
  for (const Partition& partition : partitions) op_count += partition.ops.size();
  std::cout << options.file << ": " << graph.ops().size() << " ops, " << op_count << " in canonical form, " << partitions.size()
            << (partitions.size() == 1 ? " partition" : " partitions") << ", backend " << backend.name() << '\n';
  for (const std::string& warning : graph.warnings()) std::cout << "warning: " << warning << '\n';
  for (const Partition& partition : partitions) {
    std::cout << "\npartition " << partition.id << ": " << describe_ops(partition) << '\n';
    print_kernels(partition, backend, options.kernel_texts);
    for (size_t i = 0; i < partition.ops.size(); ++i) print_op(partition, i);
  }
  return 0;
}

}  // namespace lamina::driver
