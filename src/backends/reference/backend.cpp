// The reference backend: ops in order, each a plain loop in double, independent of the kernel IR. The tests and the driver's
// --check compare with it.
#include "backends/backend.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "backends/reference/op_run.h"
#include "backends/reference/run.h"
#include "interface/op_schema.h"
#include "interface/shape_rules.h"
#include "interface/status.h"
#include "passes/extract_subgraph.h"

namespace lamina {
namespace reference {
namespace {

std::map<OpKind, Evaluate> join_families() {
  std::map<OpKind, Evaluate> all;
  for (const Evaluators& family :
       {norm_evaluators(), norm_backward_evaluators(), batch_norm_evaluators(), elementwise_evaluators(),
        elementwise_backward_evaluators(), binary_evaluators(), prelu_evaluators(), reduce_evaluators(), softmax_evaluators(),
        quantize_evaluators(), layout_evaluators(), indexed_evaluators(), along_axis_evaluators(), dropout_evaluators(),
        matmul_evaluators(), convolution_evaluators(), pool_evaluators(), interpolate_evaluators(), marker_evaluators()})
    all.insert(family.begin(), family.end());
  return all;
}

const std::map<OpKind, Evaluate>& evaluators() {
  static const std::map<OpKind, Evaluate> all = join_families();
  return all;
}

// The position of the last op that reads each value, so that its memory is freed as early as possible. Outputs are never
// freed.
std::vector<int> last_readers(const Graph& graph, std::span<const ValueIndex> outputs) {
  std::vector<int> last(graph.values().size(), -1);
  for (size_t op = 0; op < graph.ops().size(); ++op)
    for (const ValueIndex input : graph.ops()[op].inputs)
      if (input != kNoValue) last[static_cast<size_t>(input)] = static_cast<int>(op);
  for (const ValueIndex output : outputs) last[static_cast<size_t>(output)] = -1;
  return last;
}

void release_dead(const Op& op, int position, const std::vector<int>& last, std::vector<Tensor>& values) {
  for (const ValueIndex input : op.inputs)
    if (input != kNoValue && last[static_cast<size_t>(input)] == position) values[static_cast<size_t>(input)] = {};
}

bool is_kept_in_double(DataType type) {
  return type == DataType::f64 || type == DataType::f32 || type == DataType::bf16 || type == DataType::f16;
}

// Results of integers, booleans, f8 and casts are rounded before the next ops read them. Other wide floats stay unrounded. The
// values of run outputs before this rounding are kept beside them.
void round_narrow_results(const Op& op, std::span<const ValueIndex> outputs, std::vector<Tensor>& values) {
  for (const ValueIndex output : op.outputs) {
    if (output == kNoValue) continue;
    Tensor& tensor = values[static_cast<size_t>(output)];
    if (is_kept_in_double(tensor.dtype) && !schema_of(op.kind).traits.converts) continue;
    if (!tensor.integers.empty()) continue;  // s64 values are exact
    if (std::find(outputs.begin(), outputs.end(), output) != outputs.end()) tensor.unrounded = tensor.values;
    parallel_elements(tensor.size(), [&](int64_t i) { tensor[i] = round_to(tensor.dtype, tensor[i]); });
  }
}

class ReferenceExecutable final : public Executable {
 public:
  explicit ReferenceExecutable(const Subgraph& subgraph)
      : graph_(subgraph.graph), inputs_(subgraph.inputs), outputs_(subgraph.outputs) {
    info_.backend = "reference";
    for (const Op& op : graph_.ops()) info_.kernels.push_back("reference " + std::string(name_of(op.kind)));
    for (const auto& side : {inputs_, outputs_})
      for (const ValueIndex index : side) info_.required_bytes += bytes_touched(graph_.tensor(index));
    info_.moved_bytes = info_.required_bytes;
  }

  void execute(const ExecutionContext&, std::span<const void* const> inputs, std::span<void* const> outputs) const override {
    LAMINA_CHECK(outputs.size() == outputs_.size(), join(outputs.size(), " outputs are given, needed are ", outputs_.size()));
    const std::vector<Tensor> results = run(graph_, inputs_, outputs_, inputs);
    for (size_t i = 0; i < results.size(); ++i) store(results[i], graph_.tensor(outputs_[i]), outputs[i]);
  }

  const ExecutableInfo& info() const override { return info_; }
  void set_compile_time(double milliseconds) { info_.compile_ms = milliseconds; }

 private:
  static int64_t bytes_touched(const LogicalTensor& tensor) { return bytes_of(tensor.dtype, tensor.element_count()); }

  Graph graph_;
  std::vector<ValueIndex> inputs_, outputs_;
  ExecutableInfo info_;
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }

  std::string why_unsupported(const Graph& graph, const Op& op) const override { return reference::why_unsupported(graph, op); }

  std::unique_ptr<Executable> compile_graph(const Subgraph& subgraph) const override {
    const auto start = std::chrono::steady_clock::now();
    for (const Op& op : subgraph.graph.ops())
      if (const std::string reason = why_unsupported(subgraph.graph, op); !reason.empty())
        throw Error(Status::unimplemented, place_of(op), reason);
    auto executable = std::make_unique<ReferenceExecutable>(subgraph);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    executable->set_compile_time(took.count());
    return executable;
  }
};

}  // namespace

bool has_loop(OpKind kind) { return evaluators().contains(kind); }

std::string why_unsupported(const Graph& graph, const Op& op) {
  if (op.kind == OpKind::Wildcard && !op.outputs.empty())
    return "it represents an op that lamina does not know, so its outputs cannot be computed";
  if (has_loop(op.kind)) return fault_of_scales(graph, op);
  return join("the reference backend has no loop for ", name_of(op.kind));
}

std::vector<Tensor> run(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs,
                        std::span<const void* const> memory, const Disturb& disturb) {
  LAMINA_CHECK(memory.size() == inputs.size(), join(memory.size(), " inputs are given, needed are ", inputs.size()));
  std::vector<Tensor> values(graph.values().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& value = values[static_cast<size_t>(inputs[i])];
    value = load(graph.tensor(inputs[i]), memory[i]);
    if (disturb != nullptr) disturb(nullptr, inputs[i], value);
  }

  const std::vector<int> last = last_readers(graph, outputs);
  for (size_t position = 0; position < graph.ops().size(); ++position) {
    const Op& op = graph.ops()[position];
    const auto found = evaluators().find(op.kind);
    if (found == evaluators().end()) throw Error(Status::unimplemented, place_of(op), why_unsupported(graph, op));
    found->second(OpRun(graph, op, values));
    round_narrow_results(op, outputs, values);
    for (const ValueIndex output : op.outputs) {
      if (output != kNoValue && disturb != nullptr) disturb(&op, output, values[static_cast<size_t>(output)]);
    }
    release_dead(op, static_cast<int>(position), last, values);
  }

  std::vector<Tensor> results;
  for (const ValueIndex output : outputs) results.push_back(values[static_cast<size_t>(output)]);
  return results;
}

}  // namespace reference

const Backend& reference_backend() {
  static const reference::ReferenceBackend backend;
  return backend;
}

}  // namespace lamina
