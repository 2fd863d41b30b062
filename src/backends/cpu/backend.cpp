// The CPU backend: a partition becomes a plan of generated kernels with one arena for what passes between them.
#include "backends/backend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <new>

#include "backends/cpu/runtime.h"
#include "interface/status.h"
#include "kernels/plan.h"

namespace lamina {

namespace cpu {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Scratch memory of one executable: taken for the time of an execution, kept for the next one by the same allocator.
class ScratchPool {
 public:
  struct Block {
    void* memory;
    void (*release)(void*);
  };
  ~ScratchPool() { release_idle(); }
  Block take(size_t bytes, const Allocator* allocator) {
    const bool theirs = allocator != nullptr && allocator->allocate != nullptr && allocator->deallocate != nullptr;
    void (*const release)(void*) = theirs ? allocator->deallocate : delete_aligned;
    {
      const std::lock_guard lock(mutex_);
      const auto idle = std::find_if(free_.begin(), free_.end(), [&](const Block& block) { return block.release == release; });
      if (idle != free_.end()) {
        const Block block = *idle;
        free_.erase(idle);
        return block;
      }
    }
    void* const memory = theirs ? allocator->allocate(bytes, kAlignment) : ::operator new(bytes, std::align_val_t{kAlignment});
    if (memory == nullptr)
      throw Error(Status::out_of_memory, join("the allocator gave no ", bytes, " bytes of scratch memory"));
    return {memory, release};
  }
  void release_idle() {
    std::vector<Block> idle;
    {
      const std::lock_guard lock(mutex_);
      idle.swap(free_);
    }
    for (const Block& block : idle) block.release(block.memory);
  }
  void give_back(Block block) {
    const std::lock_guard lock(mutex_);
    free_.push_back(block);
  }

 private:
  static void delete_aligned(void* memory) { ::operator delete(memory, std::align_val_t{kAlignment}); }

  std::mutex mutex_;
  std::vector<Block> free_;
};

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs) {
    const auto start = std::chrono::steady_clock::now();
    plan_ = kernel::make_plan(graph, inputs, outputs, kAlignment);
    inplace_ = plan_.inplace_ports(inputs.size(), outputs.size());
    info_.backend = "cpu";
    info_.from_cache = true;
    info_.required_bytes = plan_.required_bytes;
    for (const kernel::PlanStep& step : plan_.steps) add_runner(step.kernel);
    scratch_bytes_ = plan_.arena_bytes + partial_bytes_;
    info_.workspace_bytes = scratch_bytes_;
    info_.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

  void execute(const ExecutionContext& context, std::span<const void* const> inputs,
               std::span<void* const> outputs) const override {
    ScratchPool::Block scratch{nullptr, nullptr};
    const bool own = scratch_bytes_ > 0 && context.workspace == nullptr;
    if (own) scratch = pool_.take(scratch_bytes_, context.allocator);
    auto* const arena = static_cast<char*>(own ? scratch.memory : context.workspace);
    for (size_t i = 0; i < runners_.size(); ++i) run_step(i, context, inputs, outputs, arena);
    if (own) pool_.give_back(scratch);
  }

  const ExecutableInfo& info() const override { return info_; }
  void release_idle_memory() const override { pool_.release_idle(); }
  std::vector<std::pair<size_t, size_t>> inplace_ports() const override { return inplace_; }

  bool may_share(size_t input, size_t output) const override { return plan_.may_share(input, output); }

 private:
  static constexpr size_t kInlineArgs = 64;

  void add_runner(const kernel::Kernel& kernel) {
    info_.kernel_texts.push_back(kernel::print(kernel));
    const KernelRunner& runner = runners_.emplace_back(kernel);
    info_.kernels.push_back(runner.symbol());
    info_.moved_bytes += runner.moved_bytes();
    info_.from_cache = info_.from_cache && runner.from_cache();
    partial_bytes_ = std::max(partial_bytes_, aligned(runner.scratch_bytes()));
  }

  void run_step(size_t index, const ExecutionContext& context, std::span<const void* const> inputs,
                std::span<void* const> outputs, char* arena) const {
    const kernel::PlanStep& step = plan_.steps[index];
    std::array<void*, kInlineArgs> inline_pointers;
    thread_local std::vector<void*> long_pointers;
    void** pointers = inline_pointers.data();
    if (step.args.size() > kInlineArgs) {
      long_pointers.resize(step.args.size());
      pointers = long_pointers.data();
    }
    for (size_t a = 0; a < step.args.size(); ++a) {
      const kernel::Binding& binding = step.args[a];
      switch (binding.source) {
        case kernel::Binding::Source::input: pointers[a] = const_cast<void*>(inputs[binding.index]); break;
        case kernel::Binding::Source::output: pointers[a] = outputs[binding.index]; break;
        case kernel::Binding::Source::arena: pointers[a] = arena + partial_bytes_ + binding.index; break;
        case kernel::Binding::Source::table: pointers[a] = const_cast<float*>(plan_.tables[binding.index].data()); break;
      }
      pointers[a] = static_cast<char*>(pointers[a]) + binding.bytes;
    }
    runners_[index].run({pointers, step.args.size()}, arena, context.threads);
  }

  kernel::Plan plan_;
  std::vector<KernelRunner> runners_;  // one per step
  size_t partial_bytes_ = 0, scratch_bytes_ = 0;
  mutable ScratchPool pool_;
  std::vector<std::pair<size_t, size_t>> inplace_;
  ExecutableInfo info_;
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  bool shares_executables() const override { return true; }

  std::string why_unsupported(const Graph& graph, const Op& op) const override {
    return kernel::why_no_kernel(graph, op, {.name = name(), .reads_four_bits = true, .writes_four_bits = true});
  }

  std::unique_ptr<Executable> compile(const Graph& subgraph, std::span<const ValueIndex> inputs,
                                      std::span<const ValueIndex> outputs) const override {
    return std::make_unique<CpuExecutable>(subgraph, inputs, outputs);
  }
};

}  // namespace
}  // namespace cpu

const Backend& cpu_backend() {
  static const cpu::CpuBackend backend;
  return backend;
}

}  // namespace lamina
