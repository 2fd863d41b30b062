#include "lamina/explain.h"

#include <algorithm>
#include <iostream>

#include "compiler/explain.h"
#include "interface/status.h"
#include "lamina/load.h"
#include "passes/pipeline.h"

namespace lamina::driver {
namespace {

void print_indented(const std::string& text, const char* indent) {
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    std::cout << indent << text.substr(start, end - start) << '\n';
    start = end + 1;
  }
}

void print_kernels(const ExplainedPartition& partition, bool texts) {
  if (!partition.problem.empty()) {
    std::cout << "  kernel: none, " << partition.problem << '\n';
    return;
  }
  for (const ExplainedKernel& kernel : partition.kernels) {
    std::cout << "  kernel: " << kernel.name << (kernel.schedule.empty() ? "" : join(" (", kernel.schedule, ")")) << '\n';
    if (texts) print_indented(kernel.text, "    ");
  }
  if (partition.kernels.empty()) std::cout << "  kernel: none, the partition computes nothing\n";
}

void print_tiles(const ExplainedPartition& partition) {
  for (const ExplainedTiles& tiles : partition.tiles) {
    std::cout << "  " << tiles.text << '\n';
    if (!tiles.sums.empty()) std::cout << "    " << tiles.sums << '\n';
  }
}

std::string tensors(const ExplainedGraph& graph, const std::vector<ExplainedPort>& ports) {
  std::string text;
  for (const ExplainedPort& port : ports) {
    if (!text.empty()) text += ", ";
    const ExplainedTensor* const tensor = port.tensor < 0 ? nullptr : &graph.tensors[static_cast<size_t>(port.tensor)];
    text += tensor == nullptr ? "none" : join(tensor->id, " ", tensor->text);
  }
  return text.empty() ? "none" : text;
}

void print_op(const ExplainedGraph& graph, const ExplainedOp& op) {
  std::cout << "  op " << op.id << ' ' << op.text << ": " << tensors(graph, op.inputs) << " -> " << tensors(graph, op.outputs)
            << '\n';
  for (const ExplainedReason& reason : op.reasons) {
    std::cout << "    [" << reason.code << "] " << reason.text;
    if (reason.other_op) std::cout << " (op " << *reason.other_op << ')';
    std::cout << '\n';
  }
}

}  // namespace

ExplainedGraph explained_graph(const GraphChoice& choice, bool compile, Bar& bar) {
  const Graph graph = load_graph(choice.file, choice.overrides);
  const Backend& backend = backend_of(graph, choice.file, choice.engine, choice.device);
  const auto policy = choice.policy == "debug" ? PartitionPolicy::debug : PartitionPolicy::fusion;
  const std::vector<Partition> partitions = partition_graph(graph, policy, backend);
  CompileBar progress(bar, partitions.size());
  compiler::ExplainOptions options{.compile = compile};
  options.progress = [&](size_t done) { progress.next(done); };
  ExplainedGraph explained = compiler::explain(partitions, {}, backend, options);
  bar.clear();
  explained.given_ops = graph.ops().size();
  explained.warnings = graph.warnings();
  explained.title = choice.file;
  return explained;
}

int explain(const ExplainOptions& options) {
  Bar bar(1);
  bar.next_file(options.file);
  const ExplainedGraph graph = explained_graph(options, true, bar);
  std::cout << graph.title << ": " << graph.given_ops << " ops, " << graph.ops.size() << " in canonical form, "
            << graph.partitions.size() << (graph.partitions.size() == 1 ? " partition" : " partitions") << ", backend "
            << graph.backend << '\n';
  for (const std::string& warning : graph.warnings) std::cout << "warning: " << warning << '\n';
  for (const ExplainedPartition& partition : graph.partitions) {
    std::cout << "\npartition " << partition.id << ": " << partition.ops_text << '\n';
    print_kernels(partition, options.kernel_texts);
    print_tiles(partition);
    for (const size_t op : partition.ops) print_op(graph, graph.ops[op]);
  }
  return 0;
}

}  // namespace lamina::driver
