#include "kernels/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "kernels/arena_builder.h"
#include "kernels/cut_graph.h"
#include "kernels/finish_sums.h"
#include "kernels/following_kernels.h"
#include "kernels/insert_casts.h"
#include "kernels/joined_values.h"
#include "kernels/library_steps.h"
#include "kernels/lower.h"
#include "kernels/quantized_matrix.h"
#include "kernels/shared_values.h"
#include "kernels/viewed_values.h"
#include "kernels/wide_copies.h"
#include "passes/tiling/isolate_dequantize.h"

namespace lamina::kernel {

namespace {

bool only_markers(const Graph& graph, const FusionGroup& group) {
  return std::all_of(group.ops.begin(), group.ops.end(),
                     [&](int i) { return graph.ops()[static_cast<size_t>(i)].kind == OpKind::End; });
}

// A value that one region computes and another one reads must be in memory.
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

// No step would write a graph input that is also an output.
void refuse_passed_through(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs) {
  for (const ValueIndex output : outputs) {
    if (std::find(inputs.begin(), inputs.end(), output) == inputs.end()) continue;
    throw Error(Status::invalid_graph,
                join("tensor ", graph.tensor(output).id, " is an input and an output of the same partition"));
  }
}

bool is_written_last(const Kernel& kernel, int arg) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const Node& node) {
    return node.kind == NodeKind::store && node.arg == arg && node.per_element && node.phase + 1 == kernel.phase_count();
  });
}

// The step with the only arg that is bound to a port; null if there are no or several such args.
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

// The only arg with this binding; -1 if there are no or several such args.
int sole_arg(const std::vector<Binding>& args, Binding::Source source, size_t index) {
  int found = -1;
  for (size_t a = 0; a < args.size(); ++a) {
    if (args[a].source != source || args[a].index != index) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(a);
  }
  return found;
}

// Whether a kernel reads each element of `source` for the last time before it writes that of `target`. Both start at the same
// byte.
bool may_lie_together(const Kernel& kernel, int source, int target) {
  const Arg &from = kernel.args[static_cast<size_t>(source)], &to = kernel.args[static_cast<size_t>(target)];
  return is_written_last(kernel, target) && from.dtype == to.dtype && from.strides == to.strides;
}

class Planner {
 public:
  Planner(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs, const PlanTarget& target,
          const LibrarySteps& library_steps)
      : graph_(graph), target_(target), library_steps_(library_steps), needed_(graph.values().size(), false) {
    for (size_t i = 0; i < inputs.size(); ++i) bindings_.insert({inputs[i], {Binding::Source::input, i}});
    for (size_t i = 0; i < outputs.size(); ++i) bindings_.insert_or_assign(outputs[i], Binding{Binding::Source::output, i});
    for (const ValueIndex value : outputs) needed_[static_cast<size_t>(value)] = true;
    for (const ValueIndex value : inputs) plan_.inputs.push_back(graph.tensor(value));
    for (const ValueIndex value : outputs) plan_.outputs.push_back(graph.tensor(value));
    joined_ = joined_values(graph, outputs);
  }

  Plan run(const std::vector<FusionGroup>& groups, const std::vector<TileRegion>& regions) {
    mark_values_between(graph_, groups, regions, needed_);
    find_views(groups);
    for (const TileRegion& region : regions) {
      if (region.rows > 0)
        add_tiled_step(groups, region);
      else
        add_group(groups[region.groups.front()]);
    }
    move_kernels_ahead(plan_.steps, arena_);
    mark_following_kernels(plan_.steps);
    write_in_place();
    keep_results_apart(plan_.steps, arena_);
    plan_.arena_bytes = arena_.finish(plan_.steps, target_.alignment);
    for (const auto* ports : {&plan_.inputs, &plan_.outputs}) {
      for (const LogicalTensor& port : *ports) plan_.required_bytes += bytes_of(port.dtype, port.element_count());
    }
    return std::move(plan_);
  }

 private:
  void find_views(const std::vector<FusionGroup>& groups) {
    std::vector<bool> kept(graph_.values().size(), false);
    for (const auto& [value, place] : joined_) kept[static_cast<size_t>(value)] = true;
    std::vector<ValueIndex> outputs;
    for (const auto& [value, binding] : bindings_)
      if (binding.source == Binding::Source::output) outputs.push_back(value);
    views_ = viewed_values(graph_, groups, outputs, kept);
  }

  void add_group(const FusionGroup& group) {
    if (views_.needs_no_step[static_cast<size_t>(group.ops.front())]) return;
    if (only_markers(graph_, group) || library_steps_.left_out.contains(group.ops.front())) return;
    const int first = group.ops.front();
    if (library_steps_.post_ops.contains(first)) return;  // added at the place of the ops that follow it
    if (const auto product = library_steps_.product_of.find(first); product != library_steps_.product_of.end())
      add_library_step(product->second, group.ops);
    else if (group.no_loop_nest.empty())
      add_kernels(group);
    else
      add_library_step(first, {});
  }

  void add_kernels(const FusionGroup& group) {
    std::vector<LoweredKernel> kernels = lower(graph_, group, needed_, target_.sums_segments);
    if (target_.computes_ahead) kernels = with_shared_values_ahead(std::move(kernels));
    for (LoweredKernel& lowered : kernels) {
      const bool joins = group.opaque_copy && schema_of(graph_.op(group.ops.front()).kind).nest == LoopNest::concatenated;
      if (joins && is_in_place(graph_.op(group.ops.front()), lowered)) continue;
      if (target_.copies_in_words) copy_in_words(lowered);
      for (const IndexCheck& check : lowered.checks)
        if (check.order)
          bind(check.sorted, bytes_of(DataType::s64, sorted_size(graph_.tensor(check.indices), check.extent)), false);
      std::vector<Binding> args;
      for (size_t a = 0; a < lowered.args.size(); ++a) {
        args.push_back(bind(lowered, a));
        if (lowered.offsets.empty()) continue;
        const DataType dtype = lowered.kernel.args[a].dtype;
        LAMINA_CHECK(bits_of(dtype) >= 8 || lowered.offsets[a] == 0, "an offset in elements of four bits");
        args.back().bytes += bytes_of(dtype, lowered.offsets[a]);
      }
      std::vector<StepIndices> indices = indices_of(lowered);
      const bool writes_part = joins || std::any_of(lowered.args.begin(), lowered.args.end(),
                                                    [this](ValueIndex value) { return joined_.contains(value); });
      plan_.steps.push_back(KernelStep{std::move(lowered.kernel), std::move(args), std::move(indices), group.ops, writes_part});
    }
  }

  // Whether the copy of a concatenation copies a part that its producer has written to its place.
  bool is_in_place(const Op& concat, const LoweredKernel& copy) const {
    const auto found = joined_.find(copy.args[0]);
    return found != joined_.end() && found->second.result == concat.outputs[0] &&
           found->second.bytes == bytes_of(copy.kernel.args[0].dtype, copy.offsets.empty() ? 0 : copy.offsets[1]);
  }

  std::vector<StepIndices> indices_of(const LoweredKernel& lowered) const {
    std::vector<StepIndices> all;
    for (const IndexCheck& check : lowered.checks) {
      const auto place_of = [&](ValueIndex value) {
        return static_cast<size_t>(std::find(lowered.args.begin(), lowered.args.end(), value) - lowered.args.begin());
      };
      const size_t arg = place_of(check.indices);
      if (arg == lowered.args.size()) continue;  // the kernel reads no entry
      all.push_back({check.op, graph_.tensor(check.indices), arg, check.extent, check.order, place_of(check.sorted)});
    }
    return all;
  }

  void add_library_step(int position, const std::vector<int>& post_ops_group) {
    Op op = graph_.op(position);
    op.inputs = library_steps_.inputs(graph_, position);
    const auto quantized = library_steps_.quantized.find(position);
    const bool is_quantized = quantized != library_steps_.quantized.end();
    const auto dequantized = library_steps_.dequantized.find(position);
    const bool is_dequantized = dequantized != library_steps_.dequantized.end();
    if (const std::string why = is_quantized || is_dequantized ? "" : why_no_step(graph_, op, target_); !why.empty())
      throw Error(Status::unimplemented, join(describe(op), ": ", why));
    LibraryStep step{op, {}, {}, {}};
    step.ops = post_ops_group;
    step.ops.push_back(position);
    if (is_quantized) step.quantized = quantized->second;
    const std::vector<int> omitted = library_steps_.omitted_ops(position);
    step.ops.insert(step.ops.end(), omitted.begin(), omitted.end());
    op.outputs = library_steps_.outputs(graph_, position);
    for (const auto& [values, tensors] : {std::pair{&op.inputs, &step.inputs}, {&op.outputs, &step.outputs}}) {
      for (const ValueIndex value : *values) {
        tensors->push_back(value == kNoValue ? LogicalTensor{} : graph_.tensor(value));
        step.args.push_back(value == kNoValue ? Binding{} : bind(value, tensors->back().byte_size(), values == &op.outputs));
      }
    }
    if (is_dequantized) {
      step.dequantized = dequantized->second;
      for (const ValueIndex value : dequantized->second.operands()) add_operand(step, value);
      read_factors(step);
    }
    const auto post_ops = library_steps_.post_ops.find(position);
    if (post_ops != library_steps_.post_ops.end()) {
      step.post_ops = post_ops->second;
      for (const PostOpOperand& operand : post_ops->second.operands) add_operand(step, operand.value);
    }
    plan_.steps.push_back(std::move(step));
  }

  void add_operand(LibraryStep& step, ValueIndex value) {
    step.operands.push_back(graph_.tensor(value));
    step.args.push_back(bind(value, step.operands.back().byte_size(), false));
  }

  void add_tiled_step(const std::vector<FusionGroup>& groups, const TileRegion& region) {
    const RegionBorder border = border_of(graph_, groups, region, needed_);
    TiledStep step;
    step.loops = region.loops, step.row_loop = region.row_loop();
    step.rows = region.rows, step.columns = region.columns, step.segments = region.segments;
    add_plans_of_tiles(step, region, border);
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
    step.tile_origins = border.tile_origins;
    add_shorter_tiles(step, region, border);
    add_sums(step, region, border);
    plan_.steps.push_back(std::move(step));
  }

  void add_plans_of_tiles(TiledStep& step, const TileRegion& region, const RegionBorder& border) const {
    const auto rest = [&](size_t loop, int64_t block) { return block > 0 ? region.loops[loop] % block : 0; };
    for (const int64_t columns : {region.columns, rest(region.loops.size() - 1, region.columns)}) {
      if (columns == 0 && region.columns > 0) continue;
      for (const int64_t rows : {region.rows, rest(region.row_loop(), region.rows)}) {
        if (rows > 0) step.plans.push_back(plan_of_tile(region, border, rows, columns));
      }
      if (region.columns == 0) break;
    }
  }

  void add_shorter_tiles(TiledStep& step, const TileRegion& region, const RegionBorder& border) const {
    if (!region.mask) return;
    const CausalMask& mask = *region.mask;
    const auto input_of = [&](ValueIndex value) {
      return static_cast<size_t>(std::find(border.inputs.begin(), border.inputs.end(), value) - border.inputs.begin());
    };
    ShorterTiles shorter;
    shorter.lengths = mask.lengths;
    shorter.seen_more = mask.seen_more;
    for (const CausalMask::Offset& offset : mask.offsets) shorter.offsets.push_back({input_of(offset.value), offset.sign});
    if (!graph_.value(mask.hidden).constant) shorter.hidden = input_of(mask.hidden);
    shorter.values = input_of(mask.values);
    shorter.entry = entry_of(step.inputs[shorter.values], region.cut.at(mask.values));
    for (const int64_t length : mask.lengths) shorter.plans.push_back(plan_of_tile(region, border, region.rows, 0, length));
    step.shorter = std::move(shorter);
  }

  // What a tile reads of a tensor that has no rows.
  static LogicalTensor entry_of(LogicalTensor tensor, const AxisLoops& cut) {
    for (size_t axis = 0; axis < cut.size(); ++axis)
      if (cut[axis] >= 0) (*tensor.shape)[axis] = 1;
    return tensor;
  }

  Plan plan_of_tile(const TileRegion& region, const RegionBorder& border, int64_t rows, int64_t columns,
                    int64_t length = 0) const {
    const Tile tile = cut_graph(graph_, region, border, rows, columns, length);
    const std::vector<FusionGroup> groups = isolate_dequantize(
        tile.graph, fuse(tile.graph, std::vector<bool>(tile.graph.ops().size(), true), true, target_.library), target_.library);
    Plan plan = make_plan(tile.graph, tile.inputs, tile.outputs, groups, one_by_one(groups.size()), target_);
    std::set<uint64_t> adding;
    for (const auto& [value, loop] : region.sums) adding.insert(graph_.op(graph_.value(value).producer.op).id);
    for (PlanStep& part : plan.steps) {
      std::visit([&](auto& each) { number_as_here(each.ops, border); }, part);
      auto* const library_step = std::get_if<LibraryStep>(&part);
      if (library_step == nullptr || !adding.contains(library_step->op.id)) continue;
      LAMINA_CHECK(!library_step->quantized && !library_step->dequantized && !library_step->post_ops,
                   join("a sum of integers: ", describe(library_step->op)));
      library_step->adds = true;
    }
    return plan;
  }

  // Ops of a tile's graph by their positions in this graph; casts of the tile are no ops here.
  static void number_as_here(std::vector<int>& ops, const RegionBorder& border) {
    std::erase_if(ops, [&](int op) { return static_cast<size_t>(op) >= border.ops.size(); });
    for (int& op : ops) op = border.ops[static_cast<size_t>(op)];
  }

  void add_sums(TiledStep& step, const TileRegion& region, const RegionBorder& border) const {
    std::vector<SumToFinish> sums;
    for (size_t o = 0; o < border.outputs.size(); ++o) {
      const auto found = region.sums.find(border.outputs[o]);
      if (found == region.sums.end()) continue;
      const LogicalTensor entry = tensor_of_sum(graph_, region, found->first);
      const bool in_segments = step.segments > 1 && static_cast<size_t>(found->second) == step.row_loop;
      TileSum sum{o, found->second, false, entry.byte_size(),
                  strides_of_loops(entry, region.cut.at(found->first), region.loops.size())};
      std::fill_n(sum.strides.begin(), step.row_loop, 0);
      LogicalTensor result = step.outputs[o];
      result.shape = entry.shape;
      sum.in_place = !in_segments && have_same_layout(result, entry) && result.dtype == DataType::f32;
      if (!sum.in_place) {
        sums.push_back({entry, result, in_segments ? step.segments : 1});
        step.ops.push_back(graph_.value(found->first).producer.op);
      }
      step.sums.push_back(std::move(sum));
    }
    if (sums.empty()) return;
    const Graph graph = graph_that_finishes(sums);
    const std::vector<FusionGroup> groups = fuse(graph, std::vector<bool>(graph.ops().size(), true), true, target_.library);
    step.finish.push_back(make_plan(graph, graph.inputs(), graph.outputs(), groups, one_by_one(groups.size()), target_));
  }

  Binding bind(const LoweredKernel& lowered, size_t index) {
    const ValueIndex value = lowered.args[index];
    const Arg& arg = lowered.kernel.args[index];
    if (value == kNoValue) {
      plan_.tables.push_back(arg.table);
      return {Binding::Source::table, plan_.tables.size() - 1};
    }
    if (value > kTemporary) return bind(value, graph_.tensor(value).byte_size(), arg.output);
    if (arg.output) bindings_.erase(value);  // the next group uses the numbers of temporaries again
    return bind(value, bytes_of(arg.dtype, span_of(lowered.kernel, arg)), arg.output);
  }

  // A value that is no port is in the arena from the step that writes it on.
  Binding bind(ValueIndex value, int64_t bytes, bool written) {
    if (const auto view = views_.memory_of.find(value); view != views_.memory_of.end())
      return bind(view->second, bytes, written);
    if (const auto joined = joined_.find(value); joined != joined_.end()) {
      const ValueIndex result = joined->second.result;
      Binding binding = bind(result, graph_.tensor(result).byte_size(), written);
      binding.bytes += joined->second.bytes;
      return binding;
    }
    const size_t step = plan_.steps.size();
    const auto found = bindings_.find(value);
    if (found == bindings_.end()) return bindings_.insert({value, arena_.add(bytes, step)}).first->second;
    if (found->second.source == Binding::Source::arena && !written) arena_.use(found->second, step);
    return found->second;
  }

  // A kernel writes its result over an input that no later step reads: its bytes are in the caches already.
  void write_in_place() {
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const auto* const step = std::get_if<KernelStep>(&plan_.steps[s]);
      if (step == nullptr) continue;
      std::set<size_t> taken;
      for (size_t written = 0; written < step->args.size(); ++written) {
        if (!step->kernel.args[written].output || !is_block_of(*step, written)) continue;
        if (arena_.block(step->args[written].index).first_step != s) continue;
        for (size_t read = 0; read < step->args.size(); ++read) {
          if (taken.contains(read) || !may_write_over(s, *step, read, written)) continue;
          arena_.join(step->args[read].index, step->args[written].index);
          taken.insert(read);
          break;
        }
      }
    }
  }
  bool may_write_over(size_t s, const KernelStep& step, size_t read, size_t written) const {
    if (step.kernel.args[read].output || !is_block_of(step, read)) return false;
    if (is_read_by_followed_step(plan_.steps, s, step.args[read])) return false;
    const ArenaBlock& block = arena_.block(step.args[read].index);
    return block.last_step == s && block.bytes == arena_.block(step.args[written].index).bytes &&
           may_lie_together(step.kernel, static_cast<int>(read), static_cast<int>(written));
  }
  // Whether the arg covers a whole block, and the step has no other arg in that block.
  static bool is_block_of(const KernelStep& step, size_t arg) {
    const Binding& binding = step.args[arg];
    return binding.source == Binding::Source::arena && binding.bytes == 0 &&
           sole_arg(step.args, binding.source, binding.index) == static_cast<int>(arg);
  }

  const Graph& graph_;
  const PlanTarget& target_;
  const LibrarySteps& library_steps_;
  std::vector<bool> needed_;  // per value: whether it must be in memory
  std::map<ValueIndex, Binding> bindings_;
  std::map<ValueIndex, PlaceInResult> joined_;
  Views views_;
  ArenaBuilder arena_;
  Plan plan_;
};

}  // namespace

const std::vector<Binding>& args_of(const PlanStep& step) {
  return std::visit([](const auto& each) -> const std::vector<Binding>& { return each.args; }, step);
}

namespace {
const std::vector<int>& ops_of(const PlanStep& step) {
  return std::visit([](const auto& each) -> const std::vector<int>& { return each.ops; }, step);
}
}  // namespace

std::vector<std::vector<int>> ops_of_steps(const Plan& plan) {
  std::vector<std::vector<int>> all;
  for (const PlanStep& step : plan.steps) {
    const auto* const tiled = std::get_if<TiledStep>(&step);
    if (tiled == nullptr) {
      all.push_back(ops_of(step));
      continue;
    }
    for (const PlanStep& part : tiled->plans.front().steps) all.push_back(ops_of(part));
    for (const Plan& plan_of_sums : tiled->finish) all.insert(all.end(), plan_of_sums.steps.size(), tiled->ops);
  }
  return all;
}

Plan make_plan(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs,
               const std::vector<FusionGroup>& groups, const std::vector<TileRegion>& regions, const PlanTarget& target) {
  refuse_passed_through(graph, inputs, outputs);
  LibrarySteps steps = find_library_steps(graph, outputs, groups, regions, target.library);
  if (target.library != nullptr) {
    if (const auto cast = insert_casts(graph, groups, regions, steps, *target.library))
      return Planner(cast->graph, inputs, outputs, target, steps).run(cast->groups, cast->regions);
  }
  return Planner(graph, inputs, outputs, target, steps).run(groups, regions);
}

bool Plan::may_share(size_t input, size_t output) const {
  const PlanStep* const user = sole_user(steps, Binding::Source::output, output);
  if (user == nullptr || user != sole_user(steps, Binding::Source::input, input)) return false;
  const auto* const kernel = std::get_if<KernelStep>(user);
  if (kernel == nullptr) return false;
  const int read = sole_arg(kernel->args, Binding::Source::input, input);
  const int written = sole_arg(kernel->args, Binding::Source::output, output);
  return kernel->args[static_cast<size_t>(read)].bytes == 0 && may_lie_together(kernel->kernel, read, written);
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

void prepare(const StepIndices& indices, const void* memory, void* sorted) {
  if (indices.order)
    sort_indices(indices.op, indices.tensor, memory, indices.extent, *indices.order, static_cast<int64_t*>(sorted));
  else
    check_indices(indices.op, indices.tensor, memory, indices.extent);
}

}  // namespace lamina::kernel
