// The CPU backend: the steps of a plan, compiled and run in order.
#include "backends/cpu/backend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <variant>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/host_block.h"
#include "backends/cpu/runtime.h"
#include "backends/scratch_pool.h"
#include "interface/status.h"

namespace lamina {

namespace cpu {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A step of the plan, compiled.
using StepRunner = std::variant<KernelRunner, std::unique_ptr<const Primitive>>;

StepRunner compile_step(const kernel::PlanStep& step, const PrimitiveLibrary* library, const Machine& machine) {
  if (const auto* generated = std::get_if<kernel::KernelStep>(&step)) return KernelRunner(generated->kernel, machine);
  LAMINA_CHECK(library != nullptr, "a library step on a backend without a library");
  return library->compile(std::get<kernel::LibraryStep>(step));
}

size_t scratch_bytes(const StepRunner& step) {
  const auto* const generated = std::get_if<KernelRunner>(&step);
  return generated != nullptr ? generated->scratch_bytes() : std::get<std::unique_ptr<const Primitive>>(step)->scratch_bytes();
}

void run(const StepRunner& step, std::span<void* const> args, void* scratch, int threads) {
  if (const auto* const generated = std::get_if<KernelRunner>(&step))
    generated->run(args, scratch, threads);
  else
    std::get<std::unique_ptr<const Primitive>>(step)->run(args, scratch, threads);
}

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(std::shared_ptr<const kernel::Plan> plan, const PrimitiveLibrary* library, const Machine& machine)
      : plan_(std::move(plan)), inplace_(plan_->inplace_ports()) {
    const auto start = std::chrono::steady_clock::now();
    info_.backend = "cpu";
    info_.from_cache = true;
    info_.required_bytes = plan_->required_bytes;
    info_.arena_bytes = plan_->arena_bytes;
    for (const kernel::PlanStep& step : plan_->steps) add_step(step, library, machine);
    info_.workspace_bytes = plan_->arena_bytes + step_bytes_;
    info_.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

  void execute(const ExecutionContext& context, std::span<const void* const> inputs,
               std::span<void* const> outputs) const override {
    ScratchPool<HostBlock>::Loan scratch(pool_, info_.workspace_bytes, context);
    for (size_t i = 0; i < runners_.size(); ++i) run_step(i, context, inputs, outputs, static_cast<char*>(scratch.memory()));
    scratch.end();
  }

  const ExecutableInfo& info() const override { return info_; }
  void release_idle_memory() const override { pool_.release_idle(); }
  std::vector<std::pair<size_t, size_t>> inplace_ports() const override { return inplace_; }

  bool may_share(size_t input, size_t output) const override { return plan_->may_share(input, output); }

 private:
  static constexpr size_t kInlineArgs = 64;

  void add_step(const kernel::PlanStep& step, const PrimitiveLibrary* library, const Machine& machine) {
    const StepRunner& runner = runners_.emplace_back(compile_step(step, library, machine));
    step_bytes_ = std::max(step_bytes_, aligned(scratch_bytes(runner)));
    info_.moved_bytes += kernel::moved_bytes(step);
    if (const auto* const generated = std::get_if<KernelRunner>(&runner)) {
      info_.kernels.push_back(generated->symbol());
      info_.kernel_texts.push_back(kernel::print(std::get<kernel::KernelStep>(step).kernel));
      info_.from_cache = info_.from_cache && generated->from_cache();
    } else {
      info_.kernels.push_back(std::get<std::unique_ptr<const Primitive>>(runner)->name());
      info_.kernel_texts.push_back(info_.kernels.back() + ": a step of the primitive library\n");
    }
  }

  // Scratch memory holds what the running step needs for itself, then the plan's arena.
  void run_step(size_t index, const ExecutionContext& context, std::span<const void* const> inputs,
                std::span<void* const> outputs, char* scratch) const {
    const std::vector<kernel::Binding>& args = kernel::args_of(plan_->steps[index]);
    std::array<void*, kInlineArgs> inline_pointers;
    thread_local std::vector<void*> long_pointers;
    void** pointers = inline_pointers.data();
    if (args.size() > kInlineArgs) {
      long_pointers.resize(args.size());
      pointers = long_pointers.data();
    }
    for (size_t a = 0; a < args.size(); ++a) pointers[a] = pointer_of(args[a], inputs, outputs, scratch);
    run(runners_[index], {pointers, args.size()}, scratch, context.threads);
  }

  void* pointer_of(const kernel::Binding& binding, std::span<const void* const> inputs, std::span<void* const> outputs,
                   char* scratch) const {
    void* memory = nullptr;
    switch (binding.source) {
      case kernel::Binding::Source::none: return nullptr;
      case kernel::Binding::Source::input: memory = const_cast<void*>(inputs[binding.index]); break;
      case kernel::Binding::Source::output: memory = outputs[binding.index]; break;
      case kernel::Binding::Source::arena: memory = scratch + step_bytes_ + binding.index; break;
      case kernel::Binding::Source::table: memory = const_cast<float*>(plan_->tables[binding.index].data()); break;
    }
    return static_cast<char*>(memory) + binding.bytes;
  }

  std::shared_ptr<const kernel::Plan> plan_;
  std::vector<StepRunner> runners_;  // one per step
  size_t step_bytes_ = 0;            // for the step that runs: the most that one needs
  mutable ScratchPool<HostBlock> pool_{[](size_t bytes, const ExecutionContext& context) {
    return std::make_unique<HostBlock>(bytes, kAlignment, context.allocator);
  }};
  std::vector<std::pair<size_t, size_t>> inplace_;
  ExecutableInfo info_;
};

class CpuBackend final : public Backend {
 public:
  // No machine: the one at hand, as it is when a plan is compiled.
  explicit CpuBackend(std::shared_ptr<const PrimitiveLibrary> library, std::optional<Machine> machine = std::nullopt)
      : library_(std::move(library)), machine_(std::move(machine)) {
    target_ = {.name = "cpu", .alignment = kAlignment, .reads_four_bits = true, .writes_four_bits = true};
    if (library_ == nullptr) return;
    target_.why_no_library_step = [this](const Graph& graph, const Op& op) { return library_->why_unsupported(graph, op); };
  }
  CpuBackend(const CpuBackend&) = delete;
  CpuBackend& operator=(const CpuBackend&) = delete;

  std::string_view name() const override { return target_.name; }
  // The cache of executables tells backends apart by name.
  bool shares_executables() const override { return library_ == nullptr && !machine_; }

  std::string why_unsupported(const Graph& graph, const Op& op) const override {
    return kernel::why_no_step(graph, op, target_);
  }
  const kernel::PlanTarget* plan_target() const override { return &target_; }
  std::unique_ptr<Executable> compile(std::shared_ptr<const kernel::Plan> plan) const override {
    return std::make_unique<CpuExecutable>(std::move(plan), library_.get(), machine_ ? *machine_ : host_machine());
  }

 private:
  std::shared_ptr<const PrimitiveLibrary> library_;
  std::optional<Machine> machine_;
  kernel::PlanTarget target_;
};

}  // namespace

std::unique_ptr<const Backend> make_backend(std::shared_ptr<const PrimitiveLibrary> library) {
  return std::make_unique<const CpuBackend>(std::move(library));
}

std::unique_ptr<const Backend> make_backend(const Machine& machine) {
  return std::make_unique<const CpuBackend>(nullptr, machine);
}

}  // namespace cpu

const Backend& cpu_backend() {
  static const cpu::CpuBackend backend(nullptr);
  return backend;
}

}  // namespace lamina
