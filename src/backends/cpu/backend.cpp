// The CPU backend: compiles the steps of a plan and runs them in order.
#include "backends/cpu/backend.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/dispatch/host_block.h"
#include "backends/cpu/dispatch/packed_constants.h"
#include "backends/cpu/library/default_primitive_library.h"
#include "backends/cpu/run/plan_runner.h"
#include "backends/cpu/threads/executor.h"
#include "backends/cpu/tune/machine_limits.h"
#include "backends/cpu/tune/tune_kernel.h"
#include "backends/scratch_pool.h"
#include "handles/locks.h"
#include "interface/status.h"

namespace lamina {

namespace cpu {
namespace {

constexpr size_t kAlignment = 64;

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(std::shared_ptr<const kernel::Plan> plan, const StepCompiler& compiler)
      : start_(std::chrono::steady_clock::now()),
        plan_(std::move(plan)),
        runner_(*plan_, compiler),
        inplace_(plan_->inplace_ports()) {
    info_.backend = "cpu";
    info_.from_cache = runner_.from_cache();
    info_.required_bytes = plan_->required_bytes;
    info_.arena_bytes = plan_->arena_bytes;
    info_.workspace_bytes = runner_.scratch_bytes();
    info_.steps = runner_.work();
    for (const StepWork& step : info_.steps) info_.moved_bytes += step.bytes;
    for (const PlanRunner::StepText& text : runner_.texts()) {
      info_.kernels.push_back(text.name);
      info_.kernel_texts.push_back(text.text);
      info_.schedules.push_back(text.schedule);
    }
    info_.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

  void execute(const ExecutionContext& context, std::span<const void* const> inputs,
               std::span<void* const> outputs) const override {
    ScratchPool<HostBlock>::Lease scratch(pool_, info_.workspace_bytes, context);
    auto* constants = static_cast<PackedConstants*>(context.constants);
    std::unique_ptr<PackedConstants> reused;
    if (constants == nullptr && runner_.program()->constant_count() > 0) {
      reused = take_idle_constants();
      constants = reused.get();
    }
    const Executor executor = context.pool == nullptr ? Executor(context.threads) : Executor(*context.pool);
    runner_.program()->run(inputs, outputs, static_cast<char*>(scratch.memory()), executor, constants, context.step_times);
    scratch.end();
    if (reused != nullptr) recycle_constants(std::move(reused));
  }

  const ExecutableInfo& info() const override { return info_; }
  std::unique_ptr<CachedConstants> cache_constants() const override {
    return runner_.program()->constant_count() == 0 ? nullptr
                                                    : std::make_unique<PackedConstants>(runner_.program()->constant_count());
  }
  size_t constant_bytes() const override { return runner_.constant_bytes(); }
  void begin_use(const Allocator* allocator) const override {
    pool_.begin_use(owner_of(allocator));
    const std::lock_guard lock(constants_mutex_);
    ++users_;
  }
  void end_use(const Allocator* allocator) const override {
    pool_.end_use(owner_of(allocator));
    const std::lock_guard lock(constants_mutex_);
    if (--users_ == 0) idle_constants_.clear();
  }
  std::vector<std::pair<size_t, size_t>> inplace_ports() const override { return inplace_; }

  bool may_share(size_t input, size_t output) const override { return plan_->may_share(input, output); }

 private:
  // For partitions that may cache none: each execution packs the weights, in memory that earlier ones have used.
  std::unique_ptr<PackedConstants> take_idle_constants() const {
    {
      const std::lock_guard lock(constants_mutex_);
      if (!idle_constants_.empty()) {
        std::unique_ptr<PackedConstants> constants = std::move(idle_constants_.back());
        idle_constants_.pop_back();
        return constants;
      }
    }
    return std::make_unique<PackedConstants>(runner_.program()->constant_count());
  }
  // Frees it if there is no memory to list it: the execution has ended well.
  void recycle_constants(std::unique_ptr<PackedConstants> constants) const {
    constants->forget();
    const std::lock_guard lock(constants_mutex_);
    try {
      idle_constants_.push_back(std::move(constants));
    } catch (const std::bad_alloc&) {
    }
  }

  std::chrono::steady_clock::time_point start_;
  std::shared_ptr<const kernel::Plan> plan_;
  PlanRunner runner_;
  mutable ScratchPool<HostBlock> pool_{[](size_t bytes, const ExecutionContext& context) {
    return std::make_unique<HostBlock>(bytes, kAlignment, context.allocator);
  }};
  mutable Mutex constants_mutex_{LockRow::scratch_pool};  // protects the two members below
  mutable std::vector<std::unique_ptr<PackedConstants>> idle_constants_;
  mutable int64_t users_ = 0;
  std::vector<std::pair<size_t, size_t>> inplace_;
  ExecutableInfo info_;
};

class CpuBackend final : public Backend {
 public:
  // Without `machine`: this machine, as described when a plan is compiled. Without `threads`: the machine's number of cores.
  explicit CpuBackend(std::shared_ptr<const PrimitiveLibrary> library, std::optional<Machine> machine = std::nullopt,
                      int threads = 0)
      : library_(std::move(library)),
        machine_(std::move(machine)),
        threads_(threads),
        shares_executables_(library_ == default_primitive_library() && !machine_) {
    target_ = {.name = "cpu",
               .alignment = kAlignment,
               .reads_four_bits = true,
               .writes_four_bits = true,
               .tile_bytes = 1 << 20,  // about the size of a second-level cache
               .computes_ahead = true,
               .sums_segments = true,
               .copies_in_words = true,
               .library = library_.get()};
  }
  CpuBackend(const CpuBackend&) = delete;
  CpuBackend& operator=(const CpuBackend&) = delete;

  std::string_view name() const override { return target_.name; }
  // The cache of executables distinguishes backends by name.
  bool shares_executables() const override { return shares_executables_; }
  // Schedules and scratch depend on it, so this is the current value, which may change later.
  int threads() const override { return threads_ > 0 ? threads_ : machine_ ? machine_->cores : default_threads(); }

  std::string why_unsupported(const Graph& graph, const Op& op) const override {
    return kernel::why_no_step(graph, op, target_);
  }
  const LibraryCapabilities* library() const override { return library_.get(); }
  bool runs_several_groups() const override { return true; }
  const kernel::PlanTarget* plan_target() const override { return &target_; }
  std::unique_ptr<Executable> compile(std::shared_ptr<const kernel::Plan> plan) const override {
    return std::make_unique<CpuExecutable>(std::move(plan), StepCompiler{library_.get(), machine()});
  }
  const MachineLimits* limits() const override { return &limits_of(machine()); }
  size_t tune(const kernel::Plan& plan, const TuningRequest& request) const override {
    return tune_plan(plan, machine(), request);
  }

 private:
  Machine machine() const {
    Machine machine = machine_ ? *machine_ : host_machine();
    machine.cores = threads();
    return machine;
  }

  std::shared_ptr<const PrimitiveLibrary> library_;
  std::optional<Machine> machine_;
  int threads_;
  bool shares_executables_;
  kernel::PlanTarget target_;
};

}  // namespace

std::unique_ptr<const Backend> make_backend(std::shared_ptr<const PrimitiveLibrary> library) {
  return std::make_unique<const CpuBackend>(std::move(library));
}

std::unique_ptr<const Backend> make_backend(const Machine& machine, std::shared_ptr<const PrimitiveLibrary> library) {
  return std::make_unique<const CpuBackend>(std::move(library), machine);
}

}  // namespace cpu

const Backend& cpu_backend() {
  static const cpu::CpuBackend backend(cpu::default_primitive_library());
  return backend;
}

std::shared_ptr<const Backend> cpu_backend(const ThreadPool& pool) {
  return std::make_shared<const cpu::CpuBackend>(cpu::default_primitive_library(), std::nullopt, cpu::thread_count(pool));
}

}  // namespace lamina
