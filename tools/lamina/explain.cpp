#include "lamina/explain.h"

#include <iostream>
#include <map>
#include <span>

#include "compiler/explain.h"
#include "interface/status.h"
#include "lamina/load.h"
#include "lamina/tree.h"
#include "passes/pipeline.h"

namespace lamina::driver {
namespace {

std::string without_last_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

void add_kernels(Tree& tree, const ExplainedPartition& partition, bool texts) {
  if (!partition.problem.empty()) {
    tree.add(join("kernel: none, ", partition.problem));
    return;
  }
  for (const ExplainedKernel& kernel : partition.kernels) {
    Tree& branch = tree.add(join("kernel: ", kernel.name, kernel.schedule.empty() ? "" : join(" (", kernel.schedule, ")")));
    if (texts) branch.add(without_last_newline(kernel.text));
  }
  if (partition.kernels.empty()) tree.add("kernel: none, the partition computes nothing");
}

void add_tiles(Tree& tree, const ExplainedPartition& partition) {
  for (const ExplainedTiles& tiles : partition.tiles) {
    Tree& branch = tree.add(without_last_newline(tiles.text));
    if (!tiles.sums.empty()) branch.add(tiles.sums);
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

void add_op(Tree& tree, const ExplainedGraph& graph, const ExplainedOp& op) {
  Tree& branch =
      tree.add(join("op ", op.id, ' ', op.text, ": ", tensors(graph, op.inputs), " -> ", tensors(graph, op.outputs)));
  for (const ExplainedReason& reason : op.reasons)
    branch.add(join("[", reason.code, "] ", reason.text, reason.other_op ? join(" (op ", *reason.other_op, ")") : ""));
}

// The codes of an op's reasons: ops with the same ones differ in names and numbers.
std::string codes_of(const ExplainedOp& op) {
  std::string codes;
  for (const ExplainedReason& reason : op.reasons) codes += join(reason.code, ' ');
  return codes;
}

std::string ids_of(const ExplainedGraph& graph, std::span<const size_t> ops) {
  std::string text = ops.size() == 1 ? "op " : "ops ";
  for (size_t i = 0; i < ops.size(); ++i) text += join(i == 0 ? "" : ", ", graph.ops[ops[i]].id);
  return text;
}

// Neighbours with the same codes are one branch.
void add_ops(Tree& tree, const ExplainedGraph& graph, const ExplainedPartition& partition) {
  const std::span<const size_t> ops = partition.ops;
  for (size_t first = 0, end = 0; first < ops.size(); first = end) {
    end = first + 1;
    while (end < ops.size() && codes_of(graph.ops[ops[end]]) == codes_of(graph.ops[ops[first]])) ++end;
    add_op(tree, graph, graph.ops[ops[first]]);
    const size_t others = end - first - 1;
    if (others == 1) add_op(tree, graph, graph.ops[ops[first + 1]]);
    if (others > 1) tree.add(join(others, " more, with the same reasons: ", ids_of(graph, ops.subspan(first + 1, others))));
  }
}

// What partitions have in common that are repetitions of each other, as the layers of a network are.
std::string shape_of(const ExplainedGraph& graph, const ExplainedPartition& partition) {
  std::string shape = partition.problem;
  for (const ExplainedKernel& kernel : partition.kernels) shape += join('|', kernel.name, ' ', kernel.schedule);
  for (const size_t op : partition.ops) shape += join('|', graph.ops[op].kind, ' ', codes_of(graph.ops[op]));
  return shape;
}

Tree tree_of(const ExplainedGraph& graph, bool kernel_texts) {
  const size_t count = graph.partitions.size();
  Tree tree{join(graph.title, "\n", graph.given_ops, " ops, ", graph.ops.size(), " in canonical form, ", count,
                 count == 1 ? " partition" : " partitions", ", backend ", graph.backend)};
  for (const std::string& warning : graph.warnings) tree.add(join("warning: ", warning));
  std::map<std::string, uint64_t> known;
  for (const ExplainedPartition& partition : graph.partitions) {
    const auto [place, is_new] = known.try_emplace(shape_of(graph, partition), partition.id);
    if (!is_new) {
      tree.add(join("partition ", partition.id, ": kernels and reasons as of partition ", place->second, ", with ",
                    ids_of(graph, partition.ops)));
      continue;
    }
    Tree& branch = tree.add(join("partition ", partition.id, ": ", partition.ops_text));
    add_kernels(branch, partition, kernel_texts);
    add_tiles(branch, partition);
    add_ops(branch, graph, partition);
  }
  return tree;
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
  print_tree(std::cout, tree_of(graph, options.kernel_texts));
  return 0;
}

}  // namespace lamina::driver
