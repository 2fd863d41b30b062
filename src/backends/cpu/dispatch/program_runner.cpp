#include "backends/cpu/dispatch/program_runner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <utility>

#include "backends/cpu/dispatch/tile_dispatch.h"
#include "interface/per_thread.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run_check(const IndexCheck& check, std::span<void* const> args) {
  if (!check.sorts) return check_indices(check.place, check.tensor, args[check.arg], check.extent);
  sort_indices(check.place, check.tensor, args[check.arg], check.extent, check.order,
               static_cast<int64_t*>(args[check.sorted]));
}

}  // namespace

ProgramRunner::ProgramRunner(ProgramMemory memory, std::vector<Step> steps)
    : memory_(std::move(memory)), positions_(static_cast<size_t>(memory_.positions)), steps_(std::move(steps)) {
  std::iota(positions_.begin(), positions_.end(), 0);
}

ProgramRunner::~ProgramRunner() = default;

const Primitive* ProgramRunner::primitive(size_t step) const {
  return std::get<std::unique_ptr<const Primitive>>(steps_[step].runner).get();
}

void ProgramRunner::run(std::span<const void* const> inputs, std::span<void* const> outputs, char* scratch,
                        const Executor& executor, PackedConstants* constants, std::vector<StepTime>* times) const {
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const bool is_packed = std::all_of(step.only_for.begin(), step.only_for.end(), [&](size_t i) { return constants->has(i); });
    if (!step.only_for.empty() && is_packed) continue;
    const int64_t begin = times == nullptr ? 0 : now();
    const size_t number = s;
    int64_t of_kernel = 0;
    if (step.is_followed)
      run_followed(step, steps_[++s], inputs, outputs, scratch, executor, constants, times == nullptr ? nullptr : &of_kernel);
    else
      run_step(step, inputs, outputs, scratch, executor, constants);
    if (times == nullptr) continue;
    const int64_t end = now(), end_of_step = std::max(begin, end - of_kernel);
    times->push_back({number, begin, end_of_step});
    if (step.is_followed) times->push_back({s, end_of_step, end});
  }
}

// The kernel runs on each part of the result when that has been written, on the same thread: it is in the thread's caches.
// `of_kernel`, unless it is null: set to the time of the threads in the kernel, divided by their number.
void ProgramRunner::run_followed(const Step& step, const Step& kernel, std::span<const void* const> inputs,
                                 std::span<void* const> outputs, char* scratch, const Executor& executor,
                                 PackedConstants* constants, int64_t* of_kernel) const {
  std::array<void*, kInlineArgs> args, args_of_kernel;
  for (const auto& [from, to] : {std::pair{&step, &args}, {&kernel, &args_of_kernel}})
    for (size_t a = 0; a < from->args.size(); ++a) (*to)[a] = pointer_of(from->args[a], inputs, outputs, scratch);
  const KernelDispatch::Parts parts(*std::get<std::shared_ptr<const KernelDispatch>>(kernel.runner),
                                    {args_of_kernel.data(), kernel.args.size()});
  const int64_t columns = std::get<std::unique_ptr<const Primitive>>(step.runner)->columns_of_parts();
  const auto run_kernel = [columns, &parts](const ResultPart& part) {
    parts.run(columns, part.first_row, part.rows, part.first_column, part.columns);
  };
  const std::span<void* const> given(args.data(), step.args.size());
  if (of_kernel == nullptr) return run_primitive(step, given, scratch, executor, constants, run_kernel);
  std::atomic<int64_t> sum = 0;
  run_primitive(step, given, scratch, executor, constants, [&run_kernel, &sum](const ResultPart& part) {
    const int64_t begin = now();
    run_kernel(part);
    sum.fetch_add(now() - begin, std::memory_order_relaxed);
  });
  *of_kernel = sum.load() / executor.threads();
}

// Scratch memory contains the scratch of the running step, then the plan's arena.
void ProgramRunner::run_step(const Step& step, std::span<const void* const> inputs, std::span<void* const> outputs,
                             char* scratch, const Executor& executor, PackedConstants* constants) const {
  std::array<void*, kInlineArgs> inline_pointers;
  // Per thread, so that only its first execution allocates. Tiled steps, which run other steps, have few args and do not use
  // it.
  void** pointers = inline_pointers.data();
  if (step.args.size() > kInlineArgs) {
    std::vector<void*>& long_pointers = PerThread<ProgramRunner, std::vector<void*>>::get();
    long_pointers.resize(step.args.size());
    pointers = long_pointers.data();
  }
  for (size_t a = 0; a < step.args.size(); ++a) pointers[a] = pointer_of(step.args[a], inputs, outputs, scratch);
  const std::span<void* const> args(pointers, step.args.size());
  for (const IndexCheck& check : step.indices) run_check(check, args);
  if (const auto* kernel = std::get_if<std::shared_ptr<const KernelDispatch>>(&step.runner))
    (*kernel)->run(args, scratch, executor);
  else if (const auto* tiled = std::get_if<std::unique_ptr<const TileDispatch>>(&step.runner))
    (*tiled)->run(args, scratch, executor, constants);
  else
    run_primitive(step, args, scratch, executor, constants, nullptr);
}

void ProgramRunner::run_primitive(const Step& step, std::span<void* const> args, char* scratch, const Executor& executor,
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

void* ProgramRunner::pointer_of(const kernel::Binding& binding, std::span<const void* const> inputs,
                                std::span<void* const> outputs, char* scratch) const {
  void* memory = nullptr;
  switch (binding.source) {
    case kernel::Binding::Source::none: return nullptr;
    case kernel::Binding::Source::input: memory = const_cast<void*>(inputs[binding.index]); break;
    case kernel::Binding::Source::output: memory = outputs[binding.index]; break;
    case kernel::Binding::Source::arena: memory = scratch + memory_.step_bytes + binding.index; break;
    case kernel::Binding::Source::table: memory = const_cast<float*>(memory_.tables[binding.index].data()); break;
    case kernel::Binding::Source::positions: memory = const_cast<int32_t*>(positions_.data()); break;
  }
  return static_cast<char*>(memory) + binding.bytes;
}

}  // namespace lamina::cpu
