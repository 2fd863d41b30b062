#include "kernels/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "interface/status.h"
#include "kernels/arena.h"
#include "kernels/cut_graph.h"
#include "kernels/lower.h"
#include "kernels/shared_values.h"
#include "kernels/wide_copies.h"

namespace lamina::kernel {

namespace {

bool only_markers(const Graph& graph, const FusionGroup& group) {
  return std::all_of(group.ops.begin(), group.ops.end(),
                     [&](int i) { return graph.ops()[static_cast<size_t>(i)].kind == OpKind::End; });
}

// A value made in one region and read in another must be in memory.
void mark_values_between(const Graph& graph, const std::vector<FusionGroup>& groups, const std::vector<TileRegion>& regions,
                         std::vector<bool>& needed) {
  std::vector<size_t> region_of(graph.ops().size(), 0);
  for (size_t r = 0; r < regions.size(); ++r) {
    for (const size_t group : regions[r].groups)
      for (const int op : groups[group].ops) region_of[static_cast<size_t>(op)] = r;
  }
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const lamina::Value& value = graph.values()[v];
    if (value.producer.op < 0) continue;
    for (const Port& reader : value.consumers) {
      if (region_of[static_cast<size_t>(reader.op)] != region_of[static_cast<size_t>(value.producer.op)]) needed[v] = true;
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

int64_t bytes_of_tensors(const std::vector<LogicalTensor>& tensors) {
  int64_t bytes = 0;
  for (const LogicalTensor& tensor : tensors) {
    if (!tensor.is_empty_port()) bytes += bytes_of(tensor.dtype, tensor.element_count());
  }
  return bytes;
}

// The step with the only arg bound to a port; null when none or several are.
const PlanStep* sole_user(const std::vector<PlanStep>& steps, Binding::Source source, size_t port) {
  const PlanStep* user = nullptr;
  for (const PlanStep& step : steps) {
    for (const Binding& binding : args_of(step)) {
      if (binding.source != source || binding.index != port) continue;
      if (user != nullptr) return nullptr;
      user = &step;
    }
  }
  return user;
}

int arg_bound_to(const KernelStep& step, Binding::Source source, size_t port) {
  const auto found = std::find_if(step.args.begin(), step.args.end(),
                                  [&](const Binding& binding) { return binding.source == source && binding.index == port; });
  return static_cast<int>(found - step.args.begin());
}

// Blocks of the arena while steps are made: a block lives from the step that writes it to the last that reads it.
class ArenaBuilder {
 public:
  Binding add(int64_t bytes, size_t step) {
    blocks_.push_back({bytes, step, step});
    return {Binding::Source::arena, blocks_.size() - 1};
  }
  void use(const Binding& block, size_t step) { blocks_[block.index].last_step = step; }
  ArenaLayout finish(size_t alignment) const { return lay_out(blocks_, alignment); }

 private:
  std::vector<ArenaBlock> blocks_;
};

class Planner {
 public:
  Planner(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs, const PlanTarget& target)
      : graph_(graph), target_(target), needed_(graph.values().size(), false) {
    for (size_t i = 0; i < inputs.size(); ++i) bindings_.insert({inputs[i], {Binding::Source::input, i}});
    for (size_t i = 0; i < outputs.size(); ++i) bindings_.insert_or_assign(outputs[i], Binding{Binding::Source::output, i});
    for (const ValueIndex value : outputs) needed_[static_cast<size_t>(value)] = true;
    for (const ValueIndex value : inputs) plan_.inputs.push_back(graph.tensor(value));
    for (const ValueIndex value : outputs) plan_.outputs.push_back(graph.tensor(value));
  }

  Plan run(const std::vector<FusionGroup>& groups, const std::vector<TileRegion>& regions) {
    mark_values_between(graph_, groups, regions, needed_);
    if (target_.multiplies_integers != nullptr) find_quantized_products(groups, regions);
    for (const TileRegion& region : regions) {
      if (region.rows > 0)
        add_tiled_step(groups, region);
      else
        add_group(groups[region.groups.front()]);
    }
    place_arena();
    for (const auto* ports : {&plan_.inputs, &plan_.outputs}) {
      for (const LogicalTensor& port : *ports) plan_.required_bytes += bytes_of(port.dtype, port.element_count());
    }
    return std::move(plan_);
  }

 private:
  // Groups that do nothing but dequantise the factors of a product are left out: the product takes the integers.
  // Those in a tiled region are its tiles' to find.
  void find_quantized_products(const std::vector<FusionGroup>& groups, const std::vector<TileRegion>& regions) {
    for (const TileRegion& region : regions) {
      if (region.rows > 0) continue;
      const FusionGroup& group = groups[region.groups.front()];
      const std::optional<QuantizedProduct> found = quantized_group(graph_, groups, group);
      if (!found || is_kept(found->src) || is_kept(found->weights) || !target_.multiplies_integers()) continue;
      quantized_.emplace(group.ops.front(), *found);
      for (const auto* ops : {&found->src.ops, &found->weights.ops}) left_out_.insert(ops->begin(), ops->end());
    }
  }
  // Whether what is dequantised is an output of the plan.
  bool is_kept(const QuantizedFactor& factor) const {
    return std::any_of(factor.ops.begin(), factor.ops.end(), [&](int op) {
      const auto bound = bindings_.find(graph_.op(op).outputs[0]);
      return bound != bindings_.end() && bound->second.source == Binding::Source::output;
    });
  }

  void add_group(const FusionGroup& group) {
    if (only_markers(graph_, group) || left_out_.contains(group.ops.front())) return;
    if (group.no_loop_nest.empty())
      add_kernels(group);
    else
      add_library_step(group.ops.front());
  }

  void add_kernels(const FusionGroup& group) {
    std::vector<LoweredKernel> kernels = lower(graph_, group, needed_);
    if (target_.computes_ahead) kernels = with_shared_values_ahead(std::move(kernels));
    for (LoweredKernel& lowered : kernels) {
      if (target_.copies_in_words) copy_in_words(lowered);
      std::vector<Binding> args;
      for (size_t a = 0; a < lowered.args.size(); ++a) {
        args.push_back(bind(lowered, a));
        if (lowered.offsets.empty()) continue;
        const DataType dtype = lowered.kernel.args[a].dtype;
        LAMINA_CHECK(bits_of(dtype) >= 8 || lowered.offsets[a] == 0, "an offset in elements of four bits");
        args.back().bytes = bytes_of(dtype, lowered.offsets[a]);
      }
      plan_.steps.push_back(KernelStep{std::move(lowered.kernel), std::move(args)});
    }
  }

  void add_library_step(int position) {
    const auto quantized = quantized_.find(position);
    Op op = graph_.op(position);
    if (quantized != quantized_.end()) {
      op.inputs[0] = quantized->second.src.value;
      op.inputs[1] = quantized->second.weights.value;
    } else if (const std::string why = why_no_step(graph_, op, target_); !why.empty()) {
      throw Error(Status::unimplemented, join(describe(op), ": ", why));
    }
    LibraryStep step{op, {}, {}, {}};
    if (quantized != quantized_.end()) step.quantized = quantized->second;
    for (const auto& [values, tensors] : {std::pair{&op.inputs, &step.inputs}, {&op.outputs, &step.outputs}}) {
      for (const ValueIndex value : *values) {
        tensors->push_back(value == kNoValue ? LogicalTensor{} : graph_.tensor(value));
        step.args.push_back(value == kNoValue ? Binding{} : bind(value, tensors->back().byte_size(), values == &op.outputs));
      }
    }
    plan_.steps.push_back(std::move(step));
  }

  void add_tiled_step(const std::vector<FusionGroup>& groups, const TileRegion& region) {
    const RegionBorder border = border_of(graph_, groups, region, needed_);
    TiledStep step;
    step.loops = region.loops, step.rows = region.rows;
    step.plans.push_back(plan_of_tile(region, border, region.rows));
    if (const int64_t rest = region.loops.back() % region.rows; rest > 0)
      step.plans.push_back(plan_of_tile(region, border, rest));
    for (size_t i = 0; i < border.inputs.size(); ++i) {
      LogicalTensor tensor = made_dense(graph_.tensor(border.inputs[i]));
      if (const int axis = border.axes_of_positions[i]; axis >= 0) {
        const int64_t extent = (*tensor.shape)[static_cast<size_t>(axis)];
        tensor.strides.assign(tensor.strides.size(), 0);
        tensor.strides[static_cast<size_t>(axis)] = 1;
        plan_.positions = std::max(plan_.positions, extent);
        step.args.push_back({Binding::Source::positions});
      } else {
        step.args.push_back(bind(border.inputs[i], tensor.byte_size(), false));
      }
      step.strides.push_back(strides_of_loops(tensor, region.cut.at(border.inputs[i]), region.loops.size()));
      step.inputs.push_back(std::move(tensor));
    }
    for (const ValueIndex value : border.outputs) {
      const LogicalTensor tensor = made_dense(graph_.tensor(value));
      step.args.push_back(bind(value, tensor.byte_size(), true));
      step.strides.push_back(strides_of_loops(tensor, region.cut.at(value), region.loops.size()));
      step.outputs.push_back(tensor);
    }
    plan_.steps.push_back(std::move(step));
  }

  Plan plan_of_tile(const TileRegion& region, const RegionBorder& border, int64_t rows) const {
    const Tile tile = cut_graph(graph_, region, border, rows);
    const std::vector<FusionGroup> groups = fuse(tile.graph, std::vector<bool>(tile.graph.ops().size(), true), true);
    return make_plan(tile.graph, tile.inputs, tile.outputs, groups, one_by_one(groups.size()), target_);
  }

  Binding bind(const LoweredKernel& lowered, size_t index) {
    const ValueIndex value = lowered.args[index];
    const Arg& arg = lowered.kernel.args[index];
    if (value == kNoValue) {
      plan_.tables.push_back(arg.table);
      return {Binding::Source::table, plan_.tables.size() - 1};
    }
    if (value > kTemporary) return bind(value, graph_.tensor(value).byte_size(), arg.output);
    if (arg.output) bindings_.erase(value);  // numbers of temporaries are used again by the next group
    return bind(value, span_bytes(lowered.kernel, arg), arg.output);
  }

  // A value that is no port lies in the arena from the step that writes it on.
  Binding bind(ValueIndex value, int64_t bytes, bool written) {
    const size_t step = plan_.steps.size();
    const auto found = bindings_.find(value);
    if (found == bindings_.end()) return bindings_.insert({value, arena_.add(bytes, step)}).first->second;
    if (found->second.source == Binding::Source::arena && !written) arena_.use(found->second, step);
    return found->second;
  }

  // Numbers of blocks become offsets.
  void place_arena() {
    const ArenaLayout layout = arena_.finish(target_.alignment);
    plan_.arena_bytes = layout.bytes;
    for (PlanStep& step : plan_.steps) {
      for (Binding& binding : std::visit([](auto& each) -> std::vector<Binding>& { return each.args; }, step)) {
        if (binding.source == Binding::Source::arena) binding.index = layout.offsets[binding.index];
      }
    }
  }

  const Graph& graph_;
  const PlanTarget& target_;
  std::vector<bool> needed_;  // per value: it must be in memory
  std::map<ValueIndex, Binding> bindings_;
  std::map<int, QuantizedProduct> quantized_;  // by the product's position
  std::set<int> left_out_;                     // ops that these stand for
  ArenaBuilder arena_;
  Plan plan_;
};

}  // namespace

const std::vector<Binding>& args_of(const PlanStep& step) {
  return std::visit([](const auto& each) -> const std::vector<Binding>& { return each.args; }, step);
}

Plan make_plan(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs,
               const std::vector<FusionGroup>& groups, const std::vector<TileRegion>& regions, const PlanTarget& target) {
  refuse_passed_through(graph, inputs, outputs);
  return Planner(graph, inputs, outputs, target).run(groups, regions);
}

bool Plan::may_share(size_t input, size_t output) const {
  const PlanStep* const user = sole_user(steps, Binding::Source::output, output);
  if (user == nullptr || user != sole_user(steps, Binding::Source::input, input)) return false;
  const auto* const writing = std::get_if<KernelStep>(user);
  if (writing == nullptr) return false;
  const int writer = arg_bound_to(*writing, Binding::Source::output, output);
  if (!is_written_last(writing->kernel, writer)) return false;
  const Arg& source = writing->kernel.args[static_cast<size_t>(arg_bound_to(*writing, Binding::Source::input, input))];
  const Arg& target = writing->kernel.args[static_cast<size_t>(writer)];
  return source.dtype == target.dtype && source.strides == target.strides;
}

std::vector<std::pair<size_t, size_t>> Plan::inplace_ports() const {
  std::vector<std::pair<size_t, size_t>> pairs;
  std::vector<bool> taken(inputs.size(), false);
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t i = 0; i < inputs.size(); ++i) {
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

int64_t moved_bytes(const PlanStep& step) {
  if (const auto* kernel = std::get_if<KernelStep>(&step)) return moved_bytes(kernel->kernel);
  if (const auto* tiled = std::get_if<TiledStep>(&step))
    return bytes_of_tensors(tiled->inputs) + bytes_of_tensors(tiled->outputs);
  const auto& library = std::get<LibraryStep>(step);
  return bytes_of_tensors(library.inputs) + bytes_of_tensors(library.outputs);
}

}  // namespace lamina::kernel
