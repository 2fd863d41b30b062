#include "random/find_fault.h"

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <variant>
#include <vector>

#include "backends/cpu/support/interpreter_bits.h"
#include "backends/gpu/schedule/sum_order.h"
#include "compiler/compile.h"
#include "interface/json/json.h"
#include "interface/op_schema.h"
#include "interface/status.h"
#include "lamina/check.h"
#include "lamina/device_tensors.h"
#include "lamina/fill.h"
#include "passes/pipeline.h"
#include "random/edge_values.h"

namespace lamina::testing {

namespace {

using driver::Buffer;
using driver::Buffers;

// Compares two outputs element by element; strides and gaps may differ.
bool are_same(const Buffer& a, const Buffer& b) {
  bool same = a.element_count() == b.element_count();
  std::vector<double> values;
  driver::for_each_element(a.tensor(), 0, same ? a.element_count() : 0,
                           [&](int64_t, int64_t offset) { values.push_back(a.load(offset)); });
  driver::for_each_element(b.tensor(), 0, same ? b.element_count() : 0, [&](int64_t i, int64_t offset) {
    const double left = values[static_cast<size_t>(i)], right = b.load(offset);
    const bool are_nan = std::isnan(left) && std::isnan(right);
    same = same && (are_nan || (left == right && std::signbit(left) == std::signbit(right)));
  });
  return same;
}

bool has_rows_in_pieces(const kernel::Kernel& kernel) {
  return kernel.has_row_reduction() && static_cast<int>(kernel.extents.size()) - kernel.outer_rank > 1;
}

bool has_coarse_shift(const kernel::Kernel& kernel) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const kernel::Node& node) {
    return node.kind == kernel::NodeKind::moments && kernel::data_precision(kernel, node.operands[0]) != DataType::undef;
  });
}

class GraphRun {
 public:
  GraphRun(const Graph& graph, const Backend& backend, uint64_t seed, PartitionPolicy policy)
      : graph_(graph), backend_(backend), partitions_(partition_graph(graph, policy, backend)) {
    std::vector<ValueIndex> missing = graph.inputs();
    for (const ValueIndex input : missing) buffers_[graph.tensor(input).id] = std::make_shared<Buffer>(graph.tensor(input));
    driver::fill_inputs(graph, missing, seed, buffers_);
    for (const ValueIndex input : missing) add_edge_values(graph, input, seed, *buffers_.at(graph.tensor(input).id));
  }

  void run(Findings& findings) {
    for (Partition& partition : partitions_) {
      const Backend* const chosen = choose(partition);
      partition.supported = chosen != nullptr;
      ++findings.partitions[chosen == nullptr ? "refused" : std::string(chosen->name())];
      if (chosen == nullptr || !has_inputs(partition)) return;
      try {
        findings.fault = run_partition(partition, *chosen, findings.kernels);
      } catch (const Error& error) {
        if (error.status() != Status::unimplemented) throw;
        ++findings.partitions["refused"];
        return;
      }
      if (!findings.fault.empty()) return;
    }
  }

  const Buffers& buffers() const { return buffers_; }
  // Whether the partitions contain only ops of the user's graph, none that raising added.
  bool raised_nothing() const {
    for (const Partition& partition : partitions_) {
      for (const int op : partition.ops) {
        if (!partition.graph->op(op).raised_by.empty()) return false;
      }
    }
    return true;
  }
  // Whether each sum has the order and the shift that it has in any other kernel: a row in several runs is summed run by run,
  // and moments use a shift of 16 bits where the data of the kernel has 16.
  bool sums_as_any_kernel() const { return sums_as_any_kernel_; }
  // On a GPU the order of sums follows from all args of a kernel that are dense (gpu/schedule/sum_order.h): the orders of the
  // kernels that reduce, each with the elements of a row.
  using Orders = std::set<std::tuple<int64_t, int, int, int, int64_t>>;
  const Orders& orders_on_device() const { return orders_on_device_; }

 private:
  const Backend* choose(const Partition& partition) const {
    if (partition.supported) return &backend_;
    const Op& op = partition.graph->op(partition.ops.front());
    return reference_backend().why_unsupported(*partition.graph, op).empty() ? &reference_backend() : nullptr;
  }
  bool has_inputs(const Partition& partition) const {
    return std::all_of(partition.inputs.begin(), partition.inputs.end(),
                       [&](ValueIndex input) { return buffers_.contains(partition.graph->tensor(input).id); });
  }

  std::string run_partition(const Partition& partition, const Backend& backend, size_t& kernels) {
    compiler::CompileRecord record;
    const auto compiled = compiler::compile_partition(partition, backend, &record);
    const std::string where = join(compiled->label(), " (", backend.name(), ")");
    std::vector<std::shared_ptr<Buffer>> sources, results;
    for (const LogicalTensor& tensor : compiled->inputs()) sources.push_back(buffers_.at(tensor.id));
    for (const LogicalTensor& tensor : compiled->outputs()) {
      results.push_back(std::make_shared<Buffer>(tensor));
      buffers_[tensor.id] = results.back();
    }
    execute(*compiled, backend, sources, results, 1);
    if (const std::string fault = check_kernels(record.subgraph, backend, kernels); !fault.empty()) return fault;
    for (const int threads : {2, 3}) {
      std::vector<std::shared_ptr<Buffer>> again;
      for (const LogicalTensor& tensor : compiled->outputs()) again.push_back(std::make_shared<Buffer>(tensor));
      execute(*compiled, backend, sources, again, threads);
      for (size_t i = 0; i < results.size(); ++i) {
        if (!are_same(*results[i], *again[i])) return join(where, ": output ", i, " has other bits with ", threads, " threads");
      }
    }
    std::vector<const void*> inputs;
    for (const auto& source : sources) inputs.push_back(source->data());
    const driver::CheckResult check = driver::check_partition(record.subgraph, inputs, results);
    return check.good ? "" : join(where, ": ", check.text());
  }

  static void execute(const compiler::CompiledPartition& compiled, const Backend& backend,
                      const std::vector<std::shared_ptr<Buffer>>& sources, const std::vector<std::shared_ptr<Buffer>>& results,
                      int threads) {
    const driver::DeviceTensors tensors(backend, sources, results);
    driver::Execution(compiled, tensors, threads).run();
    tensors.copy_outputs();
  }

  std::string check_kernels(const Subgraph& subgraph, const Backend& backend, size_t& kernels) {
    if (backend.plan_target() == nullptr) return "";
    const kernel::Plan plan = compiler::plan_subgraph(subgraph, *backend.plan_target());
    for (const kernel::PlanStep& step : plan.steps) {
      const auto* const generated = std::get_if<kernel::KernelStep>(&step);
      if (generated == nullptr || generated->kernel.row_count() * generated->kernel.row_size() == 0) continue;
      const kernel::Kernel& kernel = generated->kernel;
      sums_as_any_kernel_ = sums_as_any_kernel_ && !has_rows_in_pieces(kernel) && !has_coarse_shift(kernel);
      if (backend.device_memory() != nullptr) {
        const gpu::SumOrder order = gpu::sum_order(kernel);
        if (gpu::reduces(kernel))
          orders_on_device_.emplace(kernel.row_size(), order.chunk, order.lanes, order.steps, order.column_rows);
        continue;
      }
      ++kernels;
      if (const std::string fault = interpret(kernel); !fault.empty()) return fault;
    }
    return "";
  }

  // Compares the interpreter with the machine code, on separate memory.
  static std::string interpret(const kernel::Kernel& kernel) {
    const Memory memory = memory_for(kernel);
    Memory expected = memory;
    std::vector<kernel::InterpretedArg> args;
    for (size_t a = 0; a < kernel.args.size(); ++a) args.push_back({expected[a].data(), span(kernel, kernel.args[a])});
    kernel::interpret(kernel, args);
    const Memory actual = run_on_machine(kernel, 2, cpu::host_machine(), memory);
    const bool is_same = digest(kernel, expected) == digest(kernel, actual);
    return is_same ? "" : join("not the interpreter's bits:\n", kernel::print(kernel));
  }

  const Graph& graph_;
  const Backend& backend_;
  std::vector<Partition> partitions_;
  Buffers buffers_;
  bool sums_as_any_kernel_ = true;
  Orders orders_on_device_;
};

// Whether running op by op must give the same bits as fused kernels. Values in f32 or f64 are rounded the same way. Values in
// 16 bits are not, nor are sums of library ops. The gradient of a slope sums in the order of its loop nest.
bool keeps_bits_unfused(const Graph& graph) {
  for (const ValueIndex input : graph.inputs()) {
    if (!is_dense(graph.tensor(input))) return false;
  }
  for (const Op& op : graph.ops()) {
    const OpClass op_class = schema_of(op.kind).op_class;
    if (op_class == OpClass::library || op_class == OpClass::layout || schema_of(op.kind).nest == LoopNest::slope) return false;
    for (const ValueIndex value : op.outputs) {
      if (value == kNoValue || graph.value(value).consumers.empty()) continue;
      const DataType dtype = graph.tensor(value).dtype;
      if (is_floating(dtype) && dtype != DataType::f32 && dtype != DataType::f64) return false;
    }
  }
  return true;
}

std::string compare_unfused(const Graph& graph, const Backend& backend, uint64_t seed, const GraphRun& fused) {
  if (!keeps_bits_unfused(graph) || !fused.raised_nothing()) return "";
  Findings findings;
  GraphRun unfused(graph, backend, seed, PartitionPolicy::debug);
  unfused.run(findings);
  if (!findings.fault.empty()) return join("op by op: ", findings.fault);
  if (!fused.sums_as_any_kernel() || !unfused.sums_as_any_kernel()) return "";
  if (fused.orders_on_device() != unfused.orders_on_device()) return "";
  for (const ValueIndex output : graph.outputs()) {
    const uint64_t id = graph.tensor(output).id;
    const auto one = fused.buffers().find(id), other = unfused.buffers().find(id);
    if (one == fused.buffers().end() || other == unfused.buffers().end()) continue;
    if (!are_same(*one->second, *other->second)) return join("output ", id, " has other bits op by op");
  }
  return "";
}

std::string read_again(const Graph& graph) {
  const std::string text = write_graph_json(graph);
  Graph again = read_graph_json(text, "dump");
  again.finalize();
  return write_graph_json(again) == text ? "" : "the dump reads as another graph";
}

}  // namespace

Findings find_fault(const Recipe& recipe, const Backend& backend, uint64_t seed) {
  Findings findings;
  try {
    const Graph graph = recipe.build();
    findings.fault = read_again(graph);
    if (!findings.fault.empty()) return findings;
    GraphRun run(graph, backend, seed, PartitionPolicy::fusion);
    run.run(findings);
    if (findings.fault.empty()) findings.fault = compare_unfused(graph, backend, seed, run);
  } catch (const std::exception& error) {
    findings.fault = join("an exception: ", error.what());
  }
  return findings;
}

Recipe shrink(Recipe recipe, const Backend& backend, uint64_t seed) {
  const auto has_fault = [&](const Recipe& smaller) {
    return !smaller.steps.empty() && !find_fault(smaller, backend, seed).fault.empty();
  };
  for (bool gained = true; gained;) {
    gained = false;
    for (size_t step = recipe.steps.size(); step-- > 0;) {
      Recipe smaller = recipe.without(step);
      if (!has_fault(smaller)) continue;
      recipe = std::move(smaller);
      gained = true;
    }
    for (const uint64_t id : std::set<uint64_t>(recipe.kept)) {
      Recipe smaller = recipe.without_kept(id);
      if (!has_fault(smaller)) continue;
      recipe = std::move(smaller);
      gained = true;
    }
  }
  return recipe;
}

}  // namespace lamina::testing
