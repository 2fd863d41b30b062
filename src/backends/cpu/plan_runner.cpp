#include "backends/cpu/plan_runner.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "backends/compile_progress.h"
#include "backends/cpu/tiled_runner.h"
#include "interface/indices.h"
#include "interface/per_thread.h"
#include "interface/status.h"

namespace lamina::cpu {

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
}

PlanRunner::~PlanRunner() = default;

bool PlanRunner::is_constant(const kernel::Binding& binding) const {
  return binding.source == kernel::Binding::Source::input && binding.index < constant_inputs_.size() &&
         constant_inputs_[binding.index];
}

void PlanRunner::add(const kernel::PlanStep& step, const StepCompiler& compiler, const TileUse* tile) {
  if (const auto* library_step = std::get_if<kernel::LibraryStep>(&step))
    return add_library_step(*library_step, compiler, tile);
  size_t scratch = 0;
  if (const auto* generated = std::get_if<kernel::KernelStep>(&step)) {
    KernelRunner runner(generated->kernel, compiler.machine);
    scratch = runner.scratch_bytes();
    texts_.push_back({runner.symbol(), kernel::print(generated->kernel) + runner.loops(), runner.choice()});
    from_cache_ = from_cache_ && runner.from_cache();
    steps_.push_back({std::move(runner), kernel::args_of(step), -1, generated->indices});
  } else {
    auto tiled = std::make_unique<const TiledRunner>(
        std::get<kernel::TiledStep>(step), compiler,
        [this](const kernel::Binding& binding, size_t bytes) { return is_constant(binding) ? new_constant(bytes) : -1; });
    scratch = tiled->scratch_bytes();
    for (const StepText& text : tiled->texts()) texts_.push_back(text);
    from_cache_ = from_cache_ && tiled->from_cache();
    steps_.push_back({std::move(tiled), kernel::args_of(step)});
  }
  step_bytes_ = std::max(step_bytes_, aligned(scratch));
}

void PlanRunner::add_library_step(const kernel::LibraryStep& step, const StepCompiler& compiler, const TileUse* tile) {
  LAMINA_CHECK(compiler.library != nullptr, "a library step on a backend without a library");
  std::vector<kernel::Binding> args = step.args;
  PrimitiveUse use{.threads = tile == nullptr ? compiler.machine.cores : 1, .in_a_tile = tile != nullptr};
  const bool has_constant_weights = args.size() > 1 && step.inputs.size() > 1 && is_constant(args[1]);
  if (has_constant_weights) use.packs_weights = use.packs_once = true;
  if (tile != nullptr && tile->packed_inputs.contains(step.op.id)) {
    use.packs_weights = true;
    use.like = tile->like == nullptr ? nullptr : tile->like->primitive(step.op.id);
    args[1] = {kernel::Binding::Source::input, tile->packed_inputs.at(step.op.id)};
  }
  library_steps_[step.op.id] = steps_.size();
  std::unique_ptr<const Primitive> primitive = compiler.library->compile(step, use);
  step_bytes_ = std::max(step_bytes_, aligned(primitive->scratch_bytes()));
  texts_.push_back({primitive->name(), primitive->name() + ": a step of the primitive library\n"});
  const size_t kept = has_constant_weights ? primitive->packed_bytes() : 0;
  steps_.push_back({std::move(primitive), std::move(args), kept > 0 ? new_constant(kept) : -1});
}

int PlanRunner::new_constant(size_t bytes) {
  constant_bytes_ += bytes;
  return static_cast<int>(constants_++);
}

const Primitive* PlanRunner::primitive(uint64_t op) const {
  return std::get<std::unique_ptr<const Primitive>>(steps_[library_steps_.at(op)].runner).get();
}

void PlanRunner::run(std::span<const void* const> inputs, std::span<void* const> outputs, char* scratch,
                     const Executor& executor, PackedConstants* constants) const {
  for (const Step& step : steps_) run_step(step, inputs, outputs, scratch, executor, constants);
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
    check_indices(indices.op, indices.tensor, args[indices.arg], indices.extent);
  if (const auto* kernel = std::get_if<KernelRunner>(&step.runner))
    kernel->run(args, scratch, executor);
  else if (const auto* tiled = std::get_if<std::unique_ptr<const TiledRunner>>(&step.runner))
    (*tiled)->run(args, scratch, executor, constants);
  else
    run_primitive(step, args, scratch, executor, constants);
}

void PlanRunner::run_primitive(const Step& step, std::span<void* const> args, char* scratch, const Executor& executor,
                               PackedConstants* constants) const {
  const Primitive& primitive = *std::get<std::unique_ptr<const Primitive>>(step.runner);
  if (step.constant < 0) return primitive.run(args, scratch, executor);
  std::array<void*, kInlineArgs> packed;
  std::copy(args.begin(), args.end(), packed.begin());
  packed[1] = constants->get(static_cast<size_t>(step.constant), primitive.packed_bytes(),
                             [&](void* memory) { primitive.pack(args[1], memory, scratch, executor.while_others_wait()); });
  primitive.run({packed.data(), args.size()}, scratch, executor);
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
