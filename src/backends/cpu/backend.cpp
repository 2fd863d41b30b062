// The CPU backend: a partition becomes a plan of generated kernels with one arena for what passes between them.
#include "backends/backend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <new>

#include "backends/cpu/runtime.h"
#include "interface/op_schema.h"
#include "interface/shape_rules.h"
#include "interface/status.h"
#include "kernels/lower.h"
#include "passes/fuse.h"
#include "passes/iteration_view.h"

namespace lamina {

namespace cpu {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Scratch memory of one executable: taken for the time of an execution, kept for the next one.
class ScratchPool {
 public:
  struct Block {
    void* memory;
    void (*release)(void*);
  };
  ~ScratchPool() {
    for (const Block& block : free_) block.release(block.memory);
  }
  Block take(size_t bytes, const Allocator* allocator) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        const Block block = free_.back();
        free_.pop_back();
        return block;
      }
    }
    if (allocator != nullptr && allocator->allocate != nullptr && allocator->deallocate != nullptr) {
      void* const memory = allocator->allocate(bytes, kAlignment);
      if (memory == nullptr) throw Error(Status::out_of_memory, join("the allocator gave no ", bytes, " bytes of scratch memory"));
      return {memory, allocator->deallocate};
    }
    return {::operator new(bytes, std::align_val_t{kAlignment}), [](void* memory) { ::operator delete(memory, std::align_val_t{kAlignment}); }};
  }
  void give_back(Block block) {
    const std::lock_guard lock(mutex_);
    free_.push_back(block);
  }

 private:
  std::mutex mutex_;
  std::vector<Block> free_;
};

// Where an arg's memory comes from.
struct Binding {
  enum class Source { input, output, arena, table } source;
  size_t index;       // port, byte offset in the arena, or table number
  int64_t bytes = 0;  // from the first byte of that memory
};

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs) {
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < inputs.size(); ++i) bindings_.insert({inputs[i], {Binding::Source::input, i}});
    for (size_t i = 0; i < outputs.size(); ++i) bindings_.insert_or_assign(outputs[i], Binding{Binding::Source::output, i});
    build_steps(graph, outputs);
    copy_passed_through(graph, inputs, outputs);
    find_inplace_ports(inputs.size(), outputs.size());
    describe_costs(graph, inputs, outputs);
    info_.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

  void execute(const ExecutionContext& context, std::span<const void* const> inputs, std::span<void* const> outputs) const override {
    ScratchPool::Block scratch{nullptr, nullptr};
    const bool own = scratch_bytes_ > 0 && context.workspace == nullptr;
    if (own) scratch = pool_.take(scratch_bytes_, context.allocator);
    auto* const arena = static_cast<char*>(own ? scratch.memory : context.workspace);
    for (const Step& step : steps_) run_step(step, context, inputs, outputs, arena);
    if (own) pool_.give_back(scratch);
  }

  const ExecutableInfo& info() const override { return info_; }
  std::vector<std::pair<size_t, size_t>> inplace_ports() const override { return inplace_; }

  // An output may take the memory of an input that has its strides and type when one kernel alone reads the one, element for
  // element, and writes the other in its last walk over the row: earlier, a later walk would read the input again.
  bool may_share(size_t input, size_t output) const override {
    const Step* const writing = sole_user(Binding::Source::output, output);
    if (writing == nullptr || writing != sole_user(Binding::Source::input, input)) return false;
    const int reader = arg_bound_to(*writing, Binding::Source::input, input);
    const int writer = arg_bound_to(*writing, Binding::Source::output, output);
    const kernel::Kernel& kernel = writing->runner.kernel();
    if (!is_written_last(kernel, writer)) return false;
    const kernel::Arg& source = kernel.args[static_cast<size_t>(reader)];
    const kernel::Arg& target = kernel.args[static_cast<size_t>(writer)];
    return source.dtype == target.dtype && source.strides == target.strides;
  }

 private:
  struct Step {
    KernelRunner runner;
    std::vector<Binding> args;
  };
  static constexpr size_t kInlineArgs = 64;

  void build_steps(const Graph& graph, std::span<const ValueIndex> outputs) {
    const std::vector<FusionGroup> groups = fuse(graph, std::vector<bool>(graph.ops().size(), true), true);
    std::vector<bool> needed(graph.values().size(), false);
    for (const ValueIndex value : outputs) needed[static_cast<size_t>(value)] = true;
    mark_values_between(graph, groups, needed);
    for (const FusionGroup& group : groups) {
      if (only_markers(graph, group)) continue;
      for (kernel::LoweredKernel& lowered : kernel::lower(graph, group, needed)) {
        std::vector<Binding> args;
        for (size_t a = 0; a < lowered.args.size(); ++a) {
          args.push_back(bind(graph, lowered, a));
          if (!lowered.offsets.empty()) args.back().bytes = bytes_of(lowered.kernel.args[a].dtype, lowered.offsets[a]);
        }
        info_.kernel_texts.push_back(kernel::print(lowered.kernel));
        steps_.push_back({KernelRunner(std::move(lowered.kernel)), std::move(args)});
        partial_bytes_ = std::max(partial_bytes_, aligned(steps_.back().runner.scratch_bytes()));
      }
    }
    scratch_bytes_ = arena_bytes_ + partial_bytes_;
  }

  static bool only_markers(const Graph& graph, const FusionGroup& group) {
    return std::all_of(group.ops.begin(), group.ops.end(), [&](int i) { return graph.ops()[static_cast<size_t>(i)].kind == OpKind::End; });
  }

  // A value made in one group and read in another must be in memory.
  static void mark_values_between(const Graph& graph, const std::vector<FusionGroup>& groups, std::vector<bool>& needed) {
    std::vector<size_t> group_of(graph.ops().size(), 0);
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const int op : groups[g].ops) group_of[static_cast<size_t>(op)] = g;
    }
    for (size_t v = 0; v < graph.values().size(); ++v) {
      const Value& value = graph.values()[v];
      if (value.producer.op < 0) continue;
      for (const Port& reader : value.consumers) {
        if (group_of[static_cast<size_t>(reader.op)] != group_of[static_cast<size_t>(value.producer.op)]) needed[v] = true;
      }
    }
  }

  Binding bind(const Graph& graph, const kernel::LoweredKernel& lowered, size_t arg) {
    const ValueIndex value = lowered.args[arg];
    if (value == kNoValue) {
      tables_.push_back(lowered.kernel.args[arg].table);
      return {Binding::Source::table, tables_.size() - 1};
    }
    const bool temporary = value <= kernel::kTemporary;
    const auto found = bindings_.find(value);
    if (found != bindings_.end() && !(temporary && lowered.kernel.args[arg].output)) return found->second;
    const Binding in_arena{Binding::Source::arena, arena_bytes_};
    const int64_t bytes = temporary ? span_bytes(lowered.kernel, lowered.kernel.args[arg]) : graph.tensor(value).byte_size();
    arena_bytes_ += aligned(static_cast<size_t>(bytes));
    return bindings_.insert_or_assign(value, in_arena).first->second;
  }

  // From the first element that the kernel reaches to the last.
  static int64_t span_bytes(const kernel::Kernel& kernel, const kernel::Arg& arg) {
    int64_t last = 0;
    for (size_t d = 0; d < kernel.extents.size(); ++d) last += (kernel.extents[d] - 1) * arg.strides[d];
    return bytes_of(arg.dtype, std::max<int64_t>(last + 1, 0));
  }

  // A graph input that is an output too has nobody to write it.
  static void copy_passed_through(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs) {
    for (const ValueIndex output : outputs) {
      if (std::find(inputs.begin(), inputs.end(), output) == inputs.end()) continue;
      throw Error(Status::invalid_graph, join("tensor ", graph.tensor(output).id, " is an input and an output of the same partition"));
    }
  }

  void find_inplace_ports(size_t inputs, size_t outputs) {
    std::vector<bool> input_taken(inputs, false);
    for (size_t o = 0; o < outputs; ++o) {
      for (size_t i = 0; i < inputs; ++i) {
        if (input_taken[i] || !may_share(i, o)) continue;
        inplace_.emplace_back(i, o);
        input_taken[i] = true;
        break;
      }
    }
  }

  static bool is_written_last(const kernel::Kernel& kernel, int arg) {
    return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const kernel::Node& node) {
      return node.kind == kernel::NodeKind::store && node.arg == arg && node.per_element && node.phase + 1 == kernel.phase_count();
    });
  }

  // The step with the only kernel arg bound to a port; null when none or several are.
  const Step* sole_user(Binding::Source source, size_t port) const {
    const Step* user = nullptr;
    for (const Step& step : steps_) {
      for (const Binding& binding : step.args) {
        if (binding.source != source || binding.index != port) continue;
        if (user != nullptr) return nullptr;
        user = &step;
      }
    }
    return user;
  }

  static int arg_bound_to(const Step& step, Binding::Source source, size_t port) {
    const auto found = std::find_if(step.args.begin(), step.args.end(),
                                    [&](const Binding& binding) { return binding.source == source && binding.index == port; });
    return static_cast<int>(found - step.args.begin());
  }

  void describe_costs(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs) {
    info_.backend = "cpu";
    info_.workspace_bytes = scratch_bytes_;
    info_.from_cache = true;
    for (const Step& step : steps_) {
      info_.kernels.push_back(step.runner.symbol());
      info_.moved_bytes += step.runner.moved_bytes();
      info_.from_cache = info_.from_cache && step.runner.from_cache();
    }
    for (const auto ports : {inputs, outputs}) {
      for (const ValueIndex value : ports) info_.required_bytes += bytes_of(graph.tensor(value).dtype, graph.tensor(value).element_count());
    }
  }

  void run_step(const Step& step, const ExecutionContext& context, std::span<const void* const> inputs, std::span<void* const> outputs,
                char* arena) const {
    std::array<void*, kInlineArgs> inline_pointers;
    thread_local std::vector<void*> long_pointers;
    void** pointers = inline_pointers.data();
    if (step.args.size() > kInlineArgs) {
      long_pointers.resize(step.args.size());
      pointers = long_pointers.data();
    }
    for (size_t a = 0; a < step.args.size(); ++a) {
      const Binding& binding = step.args[a];
      switch (binding.source) {
        case Binding::Source::input: pointers[a] = const_cast<void*>(inputs[binding.index]); break;
        case Binding::Source::output: pointers[a] = outputs[binding.index]; break;
        case Binding::Source::arena: pointers[a] = arena + partial_bytes_ + binding.index; break;
        case Binding::Source::table: pointers[a] = const_cast<float*>(tables_[binding.index].data()); break;
      }
      pointers[a] = static_cast<char*>(pointers[a]) + binding.bytes;
    }
    step.runner.run({pointers, step.args.size()}, arena, context.threads);
  }

  std::map<ValueIndex, Binding> bindings_;
  std::vector<Step> steps_;
  std::vector<std::vector<float>> tables_;
  size_t arena_bytes_ = 0, partial_bytes_ = 0, scratch_bytes_ = 0;
  mutable ScratchPool pool_;
  std::vector<std::pair<size_t, size_t>> inplace_;
  ExecutableInfo info_;
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }

  std::string why_unsupported(const Graph& graph, const Op& op) const override {
    if (op.kind == OpKind::Wildcard) return "the cpu backend cannot run an op that lamina does not know";
    if (!kernel::has_lowering(op.kind)) {
      return join("the cpu backend has no kernel for ", lamina::name_of(op.kind), " yet; the reference engine may have");
    }
    if (const std::string why = iteration_view(graph, op).why_not; op.kind != OpKind::End && !why.empty()) {
      return join("the cpu backend cannot make a loop nest of it: ", why);
    }
    if (std::string fault = fault_of_scales(graph, op); !fault.empty()) return fault;
    for (const auto* ports : {&op.inputs, &op.outputs}) {
      for (const ValueIndex value : *ports) {
        if (value == kNoValue) continue;
        const DataType dtype = graph.tensor(value).dtype;
        if (dtype != DataType::s4 && dtype != DataType::u4 && (dtype != DataType::undef || op.kind == OpKind::End)) continue;
        return join("the cpu backend does not run tensors of type ", lamina::name_of(dtype), " (tensor ", graph.tensor(value).id, ")");
      }
    }
    return "";
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
