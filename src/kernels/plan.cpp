#include "kernels/plan.h"

#include <algorithm>
#include <map>

#include "interface/op_schema.h"
#include "interface/shape_rules.h"
#include "interface/status.h"
#include "kernels/lower.h"
#include "passes/fusion/fuse.h"
#include "passes/fusion/iteration_view.h"

namespace lamina::kernel {

namespace {

bool only_markers(const Graph& graph, const FusionGroup& group) {
  return std::all_of(group.ops.begin(), group.ops.end(),
                     [&](int i) { return graph.ops()[static_cast<size_t>(i)].kind == OpKind::End; });
}

// A value made in one group and read in another must be in memory.
void mark_values_between(const Graph& graph, const std::vector<FusionGroup>& groups, std::vector<bool>& needed) {
  std::vector<size_t> group_of(graph.ops().size(), 0);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int op : groups[g].ops) group_of[static_cast<size_t>(op)] = g;
  }
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const lamina::Value& value = graph.values()[v];
    if (value.producer.op < 0) continue;
    for (const Port& reader : value.consumers) {
      if (group_of[static_cast<size_t>(reader.op)] != group_of[static_cast<size_t>(value.producer.op)]) needed[v] = true;
    }
  }
}

// A graph input that is an output too has nobody to write it.
void refuse_passed_through(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs) {
  for (const ValueIndex output : outputs) {
    if (std::find(inputs.begin(), inputs.end(), output) == inputs.end()) continue;
    throw Error(Status::invalid_graph,
                join("tensor ", graph.tensor(output).id, " is an input and an output of the same partition"));
  }
}

// From the first element that the kernel reaches to the last.
int64_t span_bytes(const Kernel& kernel, const Arg& arg) {
  int64_t last = 0;
  for (size_t d = 0; d < kernel.extents.size(); ++d) last += (kernel.extents[d] - 1) * arg.strides[d];
  return bytes_of(arg.dtype, std::max<int64_t>(last + 1, 0));
}

bool is_written_last(const Kernel& kernel, int arg) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const Node& node) {
    return node.kind == NodeKind::store && node.arg == arg && node.per_element && node.phase + 1 == kernel.phase_count();
  });
}

// The step with the only kernel arg bound to a port; null when none or several are.
const PlanStep* sole_user(const std::vector<PlanStep>& steps, Binding::Source source, size_t port) {
  const PlanStep* user = nullptr;
  for (const PlanStep& step : steps) {
    for (const Binding& binding : step.args) {
      if (binding.source != source || binding.index != port) continue;
      if (user != nullptr) return nullptr;
      user = &step;
    }
  }
  return user;
}

int arg_bound_to(const PlanStep& step, Binding::Source source, size_t port) {
  const auto found = std::find_if(step.args.begin(), step.args.end(),
                                  [&](const Binding& binding) { return binding.source == source && binding.index == port; });
  return static_cast<int>(found - step.args.begin());
}

class Planner {
 public:
  Planner(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs, size_t alignment)
      : graph_(graph), inputs_(inputs), outputs_(outputs), alignment_(alignment) {
    for (size_t i = 0; i < inputs.size(); ++i) bindings_.insert({inputs[i], {Binding::Source::input, i}});
    for (size_t i = 0; i < outputs.size(); ++i) bindings_.insert_or_assign(outputs[i], Binding{Binding::Source::output, i});
  }

  Plan run() {
    build_steps();
    for (const auto ports : {inputs_, outputs_}) {
      for (const ValueIndex value : ports) {
        plan_.required_bytes += bytes_of(graph_.tensor(value).dtype, graph_.tensor(value).element_count());
      }
    }
    return std::move(plan_);
  }

 private:
  void build_steps() {
    const std::vector<FusionGroup> groups = fuse(graph_, std::vector<bool>(graph_.ops().size(), true), true);
    std::vector<bool> needed(graph_.values().size(), false);
    for (const ValueIndex value : outputs_) needed[static_cast<size_t>(value)] = true;
    mark_values_between(graph_, groups, needed);
    for (const FusionGroup& group : groups) {
      if (only_markers(graph_, group)) continue;
      for (LoweredKernel& lowered : lower(graph_, group, needed)) {
        std::vector<Binding> args;
        for (size_t a = 0; a < lowered.args.size(); ++a) {
          args.push_back(bind(lowered, a));
          if (lowered.offsets.empty()) continue;
          const DataType dtype = lowered.kernel.args[a].dtype;
          LAMINA_CHECK(bits_of(dtype) >= 8 || lowered.offsets[a] == 0, "an offset in elements of four bits");
          args.back().bytes = bytes_of(dtype, lowered.offsets[a]);
        }
        plan_.steps.push_back({std::move(lowered.kernel), std::move(args)});
      }
    }
  }

  Binding bind(const LoweredKernel& lowered, size_t arg) {
    const ValueIndex value = lowered.args[arg];
    const Kernel& kernel = lowered.kernel;
    if (value == kNoValue) {
      plan_.tables.push_back(kernel.args[arg].table);
      return {Binding::Source::table, plan_.tables.size() - 1};
    }
    const bool temporary = value <= kTemporary;
    const auto found = bindings_.find(value);
    if (found != bindings_.end() && !(temporary && kernel.args[arg].output)) return found->second;
    const Binding in_arena{Binding::Source::arena, plan_.arena_bytes};
    const int64_t bytes = temporary ? span_bytes(kernel, kernel.args[arg]) : graph_.tensor(value).byte_size();
    plan_.arena_bytes += (static_cast<size_t>(bytes) + alignment_ - 1) / alignment_ * alignment_;
    return bindings_.insert_or_assign(value, in_arena).first->second;
  }

  const Graph& graph_;
  std::span<const ValueIndex> inputs_, outputs_;
  size_t alignment_;
  std::map<ValueIndex, Binding> bindings_;
  Plan plan_;
};

}  // namespace

Plan make_plan(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs, size_t alignment) {
  refuse_passed_through(graph, inputs, outputs);
  return Planner(graph, inputs, outputs, alignment).run();
}

bool Plan::may_share(size_t input, size_t output) const {
  const PlanStep* const writing = sole_user(steps, Binding::Source::output, output);
  if (writing == nullptr || writing != sole_user(steps, Binding::Source::input, input)) return false;
  const int writer = arg_bound_to(*writing, Binding::Source::output, output);
  if (!is_written_last(writing->kernel, writer)) return false;
  const Arg& source = writing->kernel.args[static_cast<size_t>(arg_bound_to(*writing, Binding::Source::input, input))];
  const Arg& target = writing->kernel.args[static_cast<size_t>(writer)];
  return source.dtype == target.dtype && source.strides == target.strides;
}

std::vector<std::pair<size_t, size_t>> Plan::inplace_ports(size_t inputs, size_t outputs) const {
  std::vector<std::pair<size_t, size_t>> pairs;
  std::vector<bool> taken(inputs, false);
  for (size_t o = 0; o < outputs; ++o) {
    for (size_t i = 0; i < inputs; ++i) {
      if (taken[i] || !may_share(i, o)) continue;
      pairs.emplace_back(i, o);
      taken[i] = true;
      break;
    }
  }
  return pairs;
}

int64_t moved_bytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const Arg& arg : kernel.args) {
    int64_t elements = 1;
    for (size_t d = 0; d < arg.strides.size(); ++d) {
      if (arg.strides[d] != 0) elements *= kernel.extents[d];
    }
    bytes += bytes_of(arg.dtype, elements);
  }
  return bytes;
}

std::string why_no_kernel(const Graph& graph, const Op& op, const KernelBackend& backend) {
  if (op.kind == OpKind::Wildcard) return join("the ", backend.name, " backend cannot run an op that lamina does not know");
  if (!has_lowering(op.kind)) {
    return join("the ", backend.name, " backend has no kernel for ", lamina::name_of(op.kind),
                " yet; the reference engine may have");
  }
  if (const std::string why = iteration_view(graph, op).why_not; op.kind != OpKind::End && !why.empty()) {
    return join("the ", backend.name, " backend cannot make a loop nest of it: ", why);
  }
  if (std::string fault = fault_of_scales(graph, op); !fault.empty()) return fault;
  for (const auto* ports : {&op.inputs, &op.outputs}) {
    for (const ValueIndex value : *ports) {
      if (value == kNoValue) continue;
      const DataType dtype = graph.tensor(value).dtype;
      const bool has_four_bits = ports == &op.inputs ? backend.reads_four_bits : backend.writes_four_bits;
      if (dtype == DataType::undef ? op.kind == OpKind::End : bits_of(dtype) >= 8 || has_four_bits) continue;
      return join("the ", backend.name, " backend does not run tensors of type ", lamina::name_of(dtype), " (tensor ",
                  graph.tensor(value).id, ")");
    }
  }
  return "";
}

}  // namespace lamina::kernel
