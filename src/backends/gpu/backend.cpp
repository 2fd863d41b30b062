#include "backends/gpu/backend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

#include "backends/compile_progress.h"
#include "backends/gpu/device_block.h"
#include "backends/gpu/generated_library.h"
#include "backends/gpu/kernel_runner.h"
#include "backends/gpu/tune_kernel.h"
#include "backends/scratch_pool.h"
#include "interface/indices.h"
#include "interface/per_thread.h"
#include "interface/status.h"
#include "kernels/plan.h"
#include "kernels/step_work.h"

namespace lamina::gpu {

namespace {

constexpr size_t kAlignment = 256;

// All devices have the same target: the contents of a graph with engine kind gpu do not depend on the GPU.
const kernel::PlanTarget& target() {
  static const GeneratedLibrary library;
  static const kernel::PlanTarget offered{.name = "gpu", .alignment = kAlignment, .reads_four_bits = true, .library = &library};
  return offered;
}

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class GpuCapabilities final : public Capabilities {
 public:
  std::string why_unsupported(const Graph& graph, const Op& op) const override { return why_no_step(graph, op, target()); }
  bool runs_several_groups() const override { return true; }
};

class GpuExecutable final : public Executable {
 public:
  GpuExecutable(std::shared_ptr<Device> device, std::shared_ptr<const kernel::Plan> plan)
      : device_(std::move(device)), plan_(std::move(plan)), inplace_(plan_->inplace_ports()) {
    const auto start = std::chrono::steady_clock::now();
    info_.backend = device_->api();
    info_.from_cache = true;
    info_.required_bytes = plan_->required_bytes;
    info_.arena_bytes = plan_->arena_bytes;
    for (const kernel::PlanStep& step : plan_->steps) {
      report_compile_progress(runners_.size(), plan_->steps.size());
      info_.moved_bytes += kernel::moved_bytes(step);
      add_runner(runner_of(step));
    }
    report_compile_progress(plan_->steps.size(), plan_->steps.size());
    place_scratch();
    upload_tables();
    info_.workspace_bytes = scratch_bytes_;
    info_.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  ~GpuExecutable() override {
    if (tables_ != nullptr) device_->release(tables_);
  }

  void execute(const ExecutionContext& context, std::span<const void* const> inputs,
               std::span<void* const> outputs) const override {
    ScratchPool<DeviceBlock>::Lease scratch(pool_, scratch_bytes_, context);
    for (const auto& [port, place] : host_scalars_)
      device_->put(context.stream, scratch.memory(), place.offset, inputs[port], place.bytes);
    for (size_t i = 0; i < runners_.size(); ++i) run_step(i, context, inputs, outputs, scratch.memory());
    scratch.end();
  }

  const ExecutableInfo& info() const override { return info_; }
  std::vector<std::pair<size_t, size_t>> inplace_ports() const override { return inplace_; }
  bool may_share(size_t input, size_t output) const override { return plan_->may_share(input, output); }

 private:
  struct ScalarPlace {
    int64_t offset;
    size_t bytes;
  };

  std::unique_ptr<StepRunner> runner_of(const kernel::PlanStep& step) const {
    if (const auto* const generated = std::get_if<kernel::KernelStep>(&step))
      return std::make_unique<KernelRunner>(device_, generated->kernel);
    const auto* const library_step = std::get_if<kernel::LibraryStep>(&step);
    LAMINA_CHECK(library_step != nullptr, "a step that the gpu backend does not support");
    const auto generated = std::make_shared<const GeneratedLibrary>(device_);
    auto libraries = device_->libraries(generated);
    libraries.push_back(generated);
    for (const auto& library : libraries) {
      if (std::unique_ptr<StepRunner> runner = library->compile(*library_step, {})) return runner;
    }
    fail_check("a library", __FILE__, __LINE__, join("no library runs ", describe(library_step->op)));
  }

  void add_runner(std::unique_ptr<StepRunner> made) {
    made->prepare();
    const StepRunner& runner = *runners_.emplace_back(std::move(made));
    const KernelSource& source = runner.source();
    info_.kernel_texts.push_back(runner.text());
    info_.kernels.insert(info_.kernels.end(), source.symbols.begin(), source.symbols.end());
    info_.step_of_kernel.resize(info_.kernels.size(), runners_.size() - 1);
    info_.schedules.push_back(runner.schedule_name());
    info_.sources.push_back({source.symbol + device_->language().file_ending, source.text});
    info_.from_cache = info_.from_cache && runner.from_cache();
    step_bytes_ = std::max(step_bytes_, aligned(runner.scratch_bytes()));
  }

  // Order in memory: scratch of the step that runs, the plan's arena, the host scalars.
  void place_scratch() {
    scratch_bytes_ = step_bytes_ + aligned(plan_->arena_bytes);
    for (size_t i = 0; i < plan_->inputs.size(); ++i) {
      const LogicalTensor& tensor = plan_->inputs[i];
      if (tensor.property != PropertyType::host_scalar) continue;
      host_scalars_[i] = {static_cast<int64_t>(scratch_bytes_), static_cast<size_t>(tensor.byte_size())};
      scratch_bytes_ += kAlignment;
    }
  }

  void upload_tables() {
    size_t bytes = 0;
    for (const auto& table : plan_->tables) {
      table_offsets_.push_back(static_cast<int64_t>(bytes));
      bytes += aligned(table.size() * sizeof(float));
    }
    if (bytes == 0) return;
    tables_ = device_->allocate(bytes);
    for (size_t t = 0; t < plan_->tables.size(); ++t) {
      device_->copy_in(nullptr, tables_, table_offsets_[t], plan_->tables[t].data(), plan_->tables[t].size() * sizeof(float));
    }
    device_->wait(nullptr);
  }

  BufferView view_of(const kernel::Binding& binding, std::span<const void* const> inputs, std::span<void* const> outputs,
                     void* scratch) const {
    switch (binding.source) {
      case kernel::Binding::Source::none: return {};
      case kernel::Binding::Source::input: {
        const auto scalar = host_scalars_.find(binding.index);
        if (scalar != host_scalars_.end()) return {scratch, scalar->second.offset};
        return {const_cast<void*>(inputs[binding.index]), 0};
      }
      case kernel::Binding::Source::output: return {outputs[binding.index], 0};
      case kernel::Binding::Source::arena: return {scratch, static_cast<int64_t>(step_bytes_ + binding.index)};
      case kernel::Binding::Source::table: return {tables_, table_offsets_[binding.index]};
      case kernel::Binding::Source::positions: break;  // only for tiled steps, which this backend does not support
    }
    return {};
  }

  void run_step(size_t index, const ExecutionContext& context, std::span<const void* const> inputs,
                std::span<void* const> outputs, void* scratch) const {
    auto& views = PerThread<GpuExecutable, std::vector<BufferView>>::get();  // only a thread's first call allocates
    views.clear();
    for (const kernel::Binding& binding : kernel::args_of(plan_->steps[index])) {
      views.push_back(view_of(binding, inputs, outputs, scratch));
      views.back().offset += binding.bytes;
    }
    if (const auto* const generated = std::get_if<kernel::KernelStep>(&plan_->steps[index]))
      for (const kernel::StepIndices& indices : generated->indices) prepare(indices, views, context.stream);
    runners_[index]->run(context.stream, views, {scratch, 0});
  }

  // Waits for the stream: a kernel cannot report an error.
  void prepare(const kernel::StepIndices& indices, std::span<const BufferView> views, void* stream) const {
    auto& host = PerThread<kernel::StepIndices, std::vector<char>>::get();
    auto& sorted = PerThread<kernel::StepIndices, std::vector<int64_t>>::get();
    host.resize(static_cast<size_t>(indices.tensor.byte_size()));
    if (!host.empty())
      device_->copy_out(stream, host.data(), views[indices.arg].memory, views[indices.arg].offset, host.size());
    if (!host.empty()) device_->wait(stream);
    if (indices.order) sorted.resize(static_cast<size_t>(sorted_size(indices.tensor, indices.extent)));
    kernel::prepare(indices, host.data(), sorted.data());
    if (!indices.order) return;
    const BufferView to = views[indices.sorted];
    device_->copy_in(stream, to.memory, to.offset, sorted.data(), sorted.size() * sizeof(int64_t));
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<const kernel::Plan> plan_;
  std::vector<std::unique_ptr<StepRunner>> runners_;  // one per step
  void* tables_ = nullptr;
  std::vector<int64_t> table_offsets_;
  std::map<size_t, ScalarPlace> host_scalars_;  // by input port
  size_t step_bytes_ = 0, scratch_bytes_ = 0;
  mutable ScratchPool<DeviceBlock> pool_{[this](size_t bytes, const ExecutionContext& context) {
    return std::make_unique<DeviceBlock>(device_, bytes, kAlignment, context.allocator);
  }};
  std::vector<std::pair<size_t, size_t>> inplace_;
  ExecutableInfo info_;
};

class GpuMemory final : public DeviceMemory {
 public:
  explicit GpuMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  void* allocate(size_t bytes) const override { return device_->allocate(bytes); }
  void release(void* memory) const override { device_->release(memory); }
  void copy_in(void* memory, const void* host, size_t bytes) const override {
    device_->copy_in(nullptr, memory, 0, host, bytes);
  }
  void copy_out(void* host, void* memory, size_t bytes) const override { device_->copy_out(nullptr, host, memory, 0, bytes); }
  void wait(void* stream) const override { device_->wait(stream); }

 private:
  std::shared_ptr<Device> device_;
};

class GpuBackend final : public Backend {
 public:
  explicit GpuBackend(std::shared_ptr<Device> device) : device_(std::move(device)), memory_(device_) {}
  std::string_view name() const override { return device_->api(); }
  std::string why_unsupported(const Graph& graph, const Op& op) const override {
    return gpu_capabilities().why_unsupported(graph, op);
  }
  bool runs_several_groups() const override { return gpu_capabilities().runs_several_groups(); }
  const kernel::PlanTarget* plan_target() const override { return &target(); }
  std::unique_ptr<Executable> compile(std::shared_ptr<const kernel::Plan> plan) const override {
    return std::make_unique<GpuExecutable>(device_, std::move(plan));
  }
  size_t tune(const kernel::Plan& plan, const TuningRequest& request) const override {
    return tune_plan(device_, plan, request);
  }
  const DeviceMemory* device_memory() const override { return &memory_; }
  std::string device_name() const override { return device_->name(); }

 private:
  std::shared_ptr<Device> device_;
  GpuMemory memory_;
};

}  // namespace

std::shared_ptr<const Backend> make_backend(std::shared_ptr<Device> device) {
  return std::make_shared<const GpuBackend>(std::move(device));
}

}  // namespace lamina::gpu

namespace lamina {

const Capabilities& gpu_capabilities() {
  static const gpu::GpuCapabilities all;
  return all;
}

}  // namespace lamina
