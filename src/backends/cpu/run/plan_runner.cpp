#include "backends/cpu/run/plan_runner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <type_traits>

#include "backends/compile_progress.h"
#include "backends/cpu/run/tiled_runner.h"
#include "interface/per_thread.h"
#include "interface/status.h"
#include "kernels/step_work.h"

namespace lamina::cpu {

namespace {

// Such a kernel changes types or layouts. What others compute from constants may be much larger than these.
bool only_copies(const kernel::Kernel& kernel) {
  return std::all_of(kernel.nodes.begin(), kernel.nodes.end(), [](const kernel::Node& node) {
    return node.kind == kernel::NodeKind::load || node.kind == kernel::NodeKind::store;
  });
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static_assert(std::is_same_v<std::variant_alternative_t<static_cast<size_t>(StepWork::Kind::library), kernel::PlanStep>,
                             kernel::LibraryStep>,
              "the kinds of steps are in the order of kernel::PlanStep");

}  // namespace

PlanRunner::PlanRunner(const kernel::Plan& plan, const StepCompiler& compiler, const TileUse* tile)
    : tables_(plan.tables), positions_(static_cast<size_t>(plan.positions)), arena_bytes_(plan.arena_bytes) {
  std::iota(positions_.begin(), positions_.end(), 0);
  for (const LogicalTensor& input : plan.inputs)
    constant_inputs_.push_back(tile == nullptr && input.property == PropertyType::constant);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (tile == nullptr) report_compile_progress(i, plan.steps.size());
    add(plan.steps[i], compiler, tile);
  }
  if (tile == nullptr) report_compile_progress(plan.steps.size(), plan.steps.size());
  while (!constant_blocks_.empty()) end_block({kernel::Binding::Source::arena, constant_blocks_.begin()->first});
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

void PlanRunner::add(const kernel::PlanStep& step, const StepCompiler& compiler, const TileUse* tile) {
  const size_t first_text = texts_.size();
  if (const auto* generated = std::get_if<kernel::KernelStep>(&step))
    add_kernel(*generated, compiler);
  else if (const auto* library_step = std::get_if<kernel::LibraryStep>(&step))
    add_library_step(*library_step, compiler, tile);
  else
    add_tiled_step(std::get<kernel::TiledStep>(step), compiler);
  work_.push_back(work_of(step, first_text));
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

void PlanRunner::add_kernel(const kernel::KernelStep& step, const StepCompiler& compiler) {
  KernelRunner runner(step.kernel, compiler.machine);
  step_bytes_ = std::max(step_bytes_, aligned(runner.scratch_bytes()));
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
  steps_.push_back({std::move(runner), step.args, -1, step.indices});
}

// With its rows and columns as in the plan.
bool PlanRunner::may_follow(const kernel::KernelStep& step, const KernelRunner& runner) const {
  if (!step.follows_parts || !runner.has_parts() || step.args.size() > kInlineArgs) return false;
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
  auto tiled = std::make_unique<const TiledRunner>(step, compiler, constants);
  step_bytes_ = std::max(step_bytes_, aligned(tiled->scratch_bytes()));
  for (const StepText& text : tiled->texts()) texts_.push_back(text);
  from_cache_ = from_cache_ && tiled->from_cache();
  for (size_t a = 0; a < step.inputs.size(); ++a)
    if (!tiled->is_only_packed(step, a)) read_block(step.args[a]);
  for (size_t a = step.inputs.size(); a < step.args.size(); ++a) end_block(step.args[a]);
  steps_.push_back({std::move(tiled), step.args});
}

void PlanRunner::add_library_step(const kernel::LibraryStep& step, const StepCompiler& compiler, const TileUse* tile) {
  LAMINA_CHECK(compiler.library != nullptr, "a library step on a backend without a library");
  std::vector<kernel::Binding> args = step.args;
  PrimitiveUse use{.threads = tile == nullptr ? compiler.machine.cores : 1, .in_a_tile = tile != nullptr};
  const bool has_constant_weights =
      args.size() > 1 && step.inputs.size() > 1 && is_constant_or_copy(args[1]) &&
      (!step.dequantized || std::all_of(args.end() - static_cast<std::ptrdiff_t>(step.operands.size()), args.end(),
                                        [this](const auto& arg) { return is_constant(arg); }));
  if (has_constant_weights) use.packs_weights = true;
  if (tile != nullptr && tile->packed_inputs.contains(step.op.id)) {
    const TileUse::PackedInput& packed = tile->packed_inputs.at(step.op.id);
    use.packs_weights = true;
    use.reads_packed_once = packed.reads_them_once;
    use.like = tile->like == nullptr ? nullptr : tile->like->primitive(step.op.id);
    args[1] = {kernel::Binding::Source::input, packed.input};
  }
  library_steps_[step.op.id] = steps_.size();
  std::unique_ptr<const Primitive> primitive = compiler.library->compile(step, use);
  step_bytes_ = std::max(step_bytes_, aligned(primitive->scratch_bytes()));
  texts_.push_back({primitive->name(), primitive->name() + ": a step of the primitive library\n"});
  const size_t kept = has_constant_weights ? primitive->packed_bytes() : 0;
  const int constant = kept > 0 ? new_constant(args[1], kept) : -1;
  const size_t outputs_end = step.inputs.size() + step.outputs.size();
  for (size_t a = 0; a < args.size(); ++a) {
    const bool is_written = a >= step.inputs.size() && a < outputs_end, is_packed = a == 1 && constant >= 0;
    if (!is_written && !is_packed) read_block(args[a]);
  }
  for (size_t a = step.inputs.size(); a < outputs_end; ++a) end_block(args[a]);
  steps_.push_back({std::move(primitive), std::move(args), constant});
}

int PlanRunner::new_constant(const kernel::Binding& from, size_t bytes) {
  if (ConstantBlock* const block = constant_block(from)) block->packed.push_back(constants_);
  constant_bytes_ += bytes;
  return static_cast<int>(constants_++);
}

const Primitive* PlanRunner::primitive(uint64_t op) const {
  return std::get<std::unique_ptr<const Primitive>>(steps_[library_steps_.at(op)].runner).get();
}

void PlanRunner::run(std::span<const void* const> inputs, std::span<void* const> outputs, char* scratch,
                     const Executor& executor, PackedConstants* constants, std::vector<StepTime>* times) const {
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const bool is_packed = std::all_of(step.only_for.begin(), step.only_for.end(), [&](size_t i) { return constants->has(i); });
    if (!step.only_for.empty() && is_packed) continue;
    const int64_t begin = times == nullptr ? 0 : now();
    const size_t number = s;
    if (step.is_followed)
      run_followed(step, steps_[++s], inputs, outputs, scratch, executor, constants);
    else
      run_step(step, inputs, outputs, scratch, executor, constants);
    if (times != nullptr) times->push_back({number, begin, now()});
  }
}

// The kernel runs on each part of the result when that has been written, on the same thread: it is in the thread's caches.
void PlanRunner::run_followed(const Step& step, const Step& kernel, std::span<const void* const> inputs,
                              std::span<void* const> outputs, char* scratch, const Executor& executor,
                              PackedConstants* constants) const {
  std::array<void*, kInlineArgs> args, args_of_kernel;
  for (const auto& [from, to] : {std::pair{&step, &args}, {&kernel, &args_of_kernel}})
    for (size_t a = 0; a < from->args.size(); ++a) (*to)[a] = pointer_of(from->args[a], inputs, outputs, scratch);
  const KernelRunner::Parts parts(std::get<KernelRunner>(kernel.runner), {args_of_kernel.data(), kernel.args.size()});
  const int64_t columns = std::get<std::unique_ptr<const Primitive>>(step.runner)->columns_of_parts();
  const PartEnded ended = [columns, &parts](const ResultPart& part) {
    parts.run(columns, part.first_row, part.rows, part.first_column, part.columns);
  };
  run_primitive(step, {args.data(), step.args.size()}, scratch, executor, constants, ended);
}

// Scratch memory contains the scratch of the running step, then the plan's arena.
void PlanRunner::run_step(const Step& step, std::span<const void* const> inputs, std::span<void* const> outputs, char* scratch,
                          const Executor& executor, PackedConstants* constants) const {
  std::array<void*, kInlineArgs> inline_pointers;
  // Per thread, so that only its first execution allocates. Tiled steps, which run other steps, have few args and do not use
  // it.
  void** pointers = inline_pointers.data();
  if (step.args.size() > kInlineArgs) {
    std::vector<void*>& long_pointers = PerThread<PlanRunner, std::vector<void*>>::get();
    long_pointers.resize(step.args.size());
    pointers = long_pointers.data();
  }
  for (size_t a = 0; a < step.args.size(); ++a) pointers[a] = pointer_of(step.args[a], inputs, outputs, scratch);
  const std::span<void* const> args(pointers, step.args.size());
  for (const kernel::StepIndices& indices : step.indices)
    kernel::prepare(indices, args[indices.arg], indices.order ? args[indices.sorted] : nullptr);
  if (const auto* kernel = std::get_if<KernelRunner>(&step.runner))
    kernel->run(args, scratch, executor);
  else if (const auto* tiled = std::get_if<std::unique_ptr<const TiledRunner>>(&step.runner))
    (*tiled)->run(args, scratch, executor, constants);
  else
    run_primitive(step, args, scratch, executor, constants, nullptr);
}

void PlanRunner::run_primitive(const Step& step, std::span<void* const> args, char* scratch, const Executor& executor,
                               PackedConstants* constants, const PartEnded& ended) const {
  const Primitive& primitive = *std::get<std::unique_ptr<const Primitive>>(step.runner);
  const auto run = [&](std::span<void* const> with) {
    if (ended) return primitive.run_in_parts(with, scratch, executor, ended);
    primitive.run(with, scratch, executor);
  };
  if (step.constant < 0) return run(args);
  std::array<void*, kInlineArgs> packed;
  std::copy(args.begin(), args.end(), packed.begin());
  packed[1] = constants->get(static_cast<size_t>(step.constant), primitive.packed_bytes(),
                             [&](void* memory) { primitive.pack(args, memory, scratch, executor.while_others_wait()); });
  run({packed.data(), args.size()});
}

void* PlanRunner::pointer_of(const kernel::Binding& binding, std::span<const void* const> inputs,
                             std::span<void* const> outputs, char* scratch) const {
  void* memory = nullptr;
  switch (binding.source) {
    case kernel::Binding::Source::none: return nullptr;
    case kernel::Binding::Source::input: memory = const_cast<void*>(inputs[binding.index]); break;
    case kernel::Binding::Source::output: memory = outputs[binding.index]; break;
    case kernel::Binding::Source::arena: memory = scratch + step_bytes_ + binding.index; break;
    case kernel::Binding::Source::table: memory = const_cast<float*>(tables_[binding.index].data()); break;
    case kernel::Binding::Source::positions: memory = const_cast<int32_t*>(positions_.data()); break;
  }
  return static_cast<char*>(memory) + binding.bytes;
}

}  // namespace lamina::cpu
