#include "backends/cpu/run/plan_runner.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <type_traits>

#include "backends/compile_progress.h"
#include "backends/cpu/run/tiled_runner.h"
#include "interface/per_thread.h"
#include "interface/status.h"
#include "kernels/following_kernels.h"
#include "kernels/step_work.h"

namespace lamina::cpu {

namespace {

// Such a kernel changes types or layouts. What others compute from constants may be much larger than these.
bool only_copies(const kernel::Kernel& kernel) {
  return std::all_of(kernel.nodes.begin(), kernel.nodes.end(), [](const kernel::Node& node) {
    return node.kind == kernel::NodeKind::load || node.kind == kernel::NodeKind::store;
  });
}

// So that the error names the op.
void require_exportable(const kernel::LibraryStep& step, const Primitive& primitive) {
  ProgramWriter nowhere;
  try {
    primitive.write(nowhere);
  } catch (const Error& error) {
    throw Error(error.status(), place_of(step.op), error.message());
  }
}

std::vector<IndexCheck> checks_of(const kernel::KernelStep& step) {
  std::vector<IndexCheck> checks;
  for (const kernel::StepIndices& indices : step.indices)
    checks.push_back({place_of_indices(indices.op), indices.tensor, indices.arg, indices.extent, indices.order.has_value(),
                      indices.order.value_or(IndexOrder{}), indices.sorted});
  return checks;
}

static_assert(std::is_same_v<std::variant_alternative_t<static_cast<size_t>(StepWork::Kind::library), kernel::PlanStep>,
                             kernel::LibraryStep>,
              "the kinds of steps are in the order of kernel::PlanStep");

}  // namespace

PlanRunner::NextKernel PlanRunner::next_kernel(const kernel::Plan& plan, size_t step) {
  const auto* const library = std::get_if<kernel::LibraryStep>(&plan.steps[step]);
  const auto* const next = step + 1 < plan.steps.size() ? std::get_if<kernel::KernelStep>(&plan.steps[step + 1]) : nullptr;
  if (library == nullptr || next == nullptr) return {};
  if (kernel::changes_in_place(*library, *next)) return {next, std::nullopt};
  auto moved = kernel::with_result_of_kernel(plan.steps, step);
  return moved ? NextKernel{next, std::move(moved)} : NextKernel{};
}

PlanRunner::PlanRunner(const kernel::Plan& plan, const StepCompiler& compiler, const TileUse* tile)
    : memory_{.tables = plan.tables, .positions = plan.positions, .arena_bytes = plan.arena_bytes} {
  for (const LogicalTensor& input : plan.inputs)
    constant_inputs_.push_back(tile == nullptr && input.property == PropertyType::constant);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (tile == nullptr) report_compile_progress(i, plan.steps.size());
    const bool takes_next = add(plan.steps[i], compiler, tile, tile == nullptr ? next_kernel(plan, i) : NextKernel{});
    if (takes_next) ++i;
  }
  if (tile == nullptr) report_compile_progress(plan.steps.size(), plan.steps.size());
  while (!constant_blocks_.empty()) end_block({kernel::Binding::Source::arena, constant_blocks_.begin()->first});
  program_ = std::make_shared<const ProgramRunner>(std::move(memory_), std::move(steps_));
}

PlanRunner::~PlanRunner() = default;

bool PlanRunner::is_constant(const kernel::Binding& binding) const {
  return binding.source == kernel::Binding::Source::input && binding.index < constant_inputs_.size() &&
         constant_inputs_[binding.index];
}

bool PlanRunner::is_constant_or_copy(const kernel::Binding& binding) const {
  return is_constant(binding) || (binding.source == kernel::Binding::Source::arena && constant_blocks_.contains(binding.index));
}

PlanRunner::ConstantBlock* PlanRunner::constant_block(const kernel::Binding& binding) {
  const auto found = constant_blocks_.find(binding.index);
  return binding.source == kernel::Binding::Source::arena && found != constant_blocks_.end() ? &found->second : nullptr;
}

void PlanRunner::read_block(const kernel::Binding& binding) {
  if (ConstantBlock* const block = constant_block(binding)) block->is_read_otherwise = true;
}

// Another step writes to the memory of the block, so all its readers are known.
void PlanRunner::end_block(const kernel::Binding& binding) {
  ConstantBlock* const block = constant_block(binding);
  if (block == nullptr) return;
  if (!block->is_read_otherwise) steps_[block->step].only_for = std::move(block->packed);
  constant_blocks_.erase(binding.index);
}

bool PlanRunner::add(const kernel::PlanStep& step, const StepCompiler& compiler, const TileUse* tile, const NextKernel& next) {
  const size_t first_text = texts_.size();
  bool takes_next = false;
  if (const auto* generated = std::get_if<kernel::KernelStep>(&step))
    add_kernel(*generated, compiler, tile == nullptr ? compiler.machine.cores : 1);
  else if (const auto* library_step = std::get_if<kernel::LibraryStep>(&step))
    takes_next = add_library_step(*library_step, compiler, tile, next);
  else
    add_tiled_step(std::get<kernel::TiledStep>(step), compiler);
  work_.push_back(work_of(step, first_text));
  return takes_next;
}

StepWork PlanRunner::work_of(const kernel::PlanStep& step, size_t first_text) const {
  StepWork work{.kind = static_cast<StepWork::Kind>(step.index()),
                .name = "",
                .bytes = kernel::moved_bytes(step),
                .arithmetic = kernel::arithmetic_of(step)};
  if (const auto* library = std::get_if<kernel::LibraryStep>(&step)) work.name = describe(library->op) + ": ";
  for (size_t i = first_text; i < texts_.size(); ++i) work.name += (i == first_text ? "" : " + ") + texts_[i].name;
  return work;
}

void PlanRunner::add_kernel(const kernel::KernelStep& step, const StepCompiler& compiler, int threads) {
  KernelRunner runner(step.kernel, compiler.machine, threads);
  memory_.step_bytes = std::max(memory_.step_bytes, aligned(runner.scratch_bytes()));
  texts_.push_back({runner.symbol(), kernel::print(step.kernel) + runner.loops(), runner.choice()});
  from_cache_ = from_cache_ && runner.from_cache();
  // Scratch may contain weights that were packed before.
  bool copies_a_constant = only_copies(step.kernel) && runner.scratch_bytes() == 0 && !step.writes_part;
  const kernel::Binding* written = nullptr;
  for (const bool writes : {false, true}) {
    for (size_t a = 0; a < step.args.size(); ++a) {
      if (step.kernel.args[a].output != writes) continue;
      if (writes) {
        copies_a_constant = copies_a_constant && written == nullptr;
        end_block(*(written = &step.args[a]));
      } else {
        copies_a_constant = copies_a_constant && is_constant(step.args[a]);
        read_block(step.args[a]);
      }
    }
  }
  if (copies_a_constant && written != nullptr && written->source == kernel::Binding::Source::arena)
    constant_blocks_.emplace(written->index, ConstantBlock{steps_.size()});
  if (may_follow(step, runner)) steps_.back().is_followed = true;
  steps_.push_back({runner.dispatch(), step.args, -1, checks_of(step)});
}

// With its rows and columns as in the plan.
bool PlanRunner::may_follow(const kernel::KernelStep& step, const KernelRunner& runner) const {
  if (!step.follows_parts || !runner.dispatch()->has_parts() || step.args.size() > kInlineArgs) return false;
  const auto* const primitive = std::get_if<std::unique_ptr<const Primitive>>(&steps_.back().runner);
  if (primitive == nullptr || (*primitive)->columns_of_parts() == 0 || runner.kernel().extents != step.kernel.extents)
    return false;
  for (size_t a = 0; a < step.args.size(); ++a)
    if (runner.kernel().args[a].strides != step.kernel.args[a].strides) return false;
  return true;
}

void PlanRunner::add_tiled_step(const kernel::TiledStep& step, const StepCompiler& compiler) {
  const TiledRunner::Constants constants{
      [this](const kernel::Binding& binding) { return is_constant_or_copy(binding); },
      [this](const kernel::Binding& binding, size_t bytes) { return new_constant(binding, bytes); }};
  TiledRunner tiled(step, compiler, constants);
  for (const StepText& text : tiled.texts()) texts_.push_back(text);
  from_cache_ = from_cache_ && tiled.from_cache();
  for (size_t a = 0; a < step.inputs.size(); ++a)
    if (!tiled.is_only_packed(step, a)) read_block(step.args[a]);
  for (size_t a = step.inputs.size(); a < step.args.size(); ++a) end_block(step.args[a]);
  std::unique_ptr<const TileDispatch> dispatch = tiled.take_dispatch();
  memory_.step_bytes = std::max(memory_.step_bytes, aligned(dispatch->scratch_bytes()));
  steps_.push_back({std::move(dispatch), step.args});
}

bool PlanRunner::add_library_step(const kernel::LibraryStep& step, const StepCompiler& compiler, const TileUse* tile,
                                  const NextKernel& next) {
  LAMINA_CHECK(compiler.library != nullptr, "a library step on a backend without a library");
  std::vector<kernel::Binding> args = step.args;
  PrimitiveUse use{.threads = tile == nullptr ? compiler.machine.cores : 1, .in_a_tile = tile != nullptr};
  const bool has_constant_weights =
      args.size() > 1 && step.inputs.size() > 1 && is_constant_or_copy(args[1]) && has_constant_operands_of_weights(step);
  if (has_constant_weights) use.packs_weights = true;
  use.machine = &compiler.machine;
  if (next.step != nullptr) use.following = &next.step->kernel;
  if (tile != nullptr && tile->packed_inputs.contains(step.op.id)) {
    const TileUse::PackedInput& packed = tile->packed_inputs.at(step.op.id);
    use.packs_weights = true;
    use.reads_packed_once = packed.reads_them_once;
    use.like = tile->like == nullptr ? nullptr : tile->like->primitive(step.op.id);
    args[1] = {kernel::Binding::Source::input, packed.input};
  }
  library_steps_[step.op.id] = steps_.size();
  std::unique_ptr<const Primitive> primitive = compiler.library->compile(step, use);
  if (next.moved && primitive->has_following()) {
    primitive = compiler.library->compile(*next.moved, use);
    if (primitive->has_following()) {
      args = next.moved->args;
    } else {
      use.following = nullptr;
      primitive = compiler.library->compile(step, use);
    }
  }
  if (compiler.machine.keeps_objects) require_exportable(step, *primitive);
  memory_.step_bytes = std::max(memory_.step_bytes, aligned(primitive->scratch_bytes()));
  texts_.push_back({primitive->name(), primitive->name() + ": a step of the primitive library\n"});
  const bool takes_next = primitive->has_following();
  if (takes_next) texts_.push_back({next.step->kernel.name, kernel::print(next.step->kernel) + "in the step before\n"});
  const size_t kept = has_constant_weights ? primitive->packed_bytes() : 0;
  const int constant = kept > 0 ? new_constant(args[1], kept) : -1;
  const size_t outputs_end = step.inputs.size() + step.outputs.size();
  for (size_t a = 0; a < args.size(); ++a) {
    const bool is_written = a >= step.inputs.size() && a < outputs_end, is_packed = a == 1 && constant >= 0;
    if (!is_written && !is_packed) read_block(args[a]);
  }
  for (size_t a = step.inputs.size(); a < outputs_end; ++a) end_block(args[a]);
  steps_.push_back({std::move(primitive), std::move(args), constant});
  return takes_next;
}

bool PlanRunner::has_constant_operands_of_weights(const kernel::LibraryStep& step) const {
  const auto first = step.args.begin() + static_cast<std::ptrdiff_t>(step.inputs.size() + step.outputs.size());
  const size_t count = step.dequantized ? step.dequantized->operands_of_weights() : 0;
  return std::all_of(first, first + static_cast<std::ptrdiff_t>(count), [this](const auto& arg) { return is_constant(arg); });
}

int PlanRunner::new_constant(const kernel::Binding& from, size_t bytes) {
  if (ConstantBlock* const block = constant_block(from)) block->packed.push_back(memory_.constants.size());
  memory_.constants.push_back(bytes);
  return static_cast<int>(memory_.constants.size()) - 1;
}

size_t PlanRunner::constant_bytes() const {
  const std::vector<size_t>& bytes = program_->memory().constants;
  return std::accumulate(bytes.begin(), bytes.end(), size_t{0});
}

}  // namespace lamina::cpu
