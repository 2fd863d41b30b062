#include "backends/gpu/tune_kernel.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "backends/gpu/kernel_runner.h"
#include "backends/gpu/key_of_times.h"
#include "backends/tune/tune_plan.h"

namespace lamina::gpu {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kPattern = int64_t{1} << 16;  // elements, after which the values of an arg repeat
constexpr double kShortestSpan = 0.1;           // milliseconds between two events that measure accurately enough

// Blocks of device memory, released with it.
class Blocks {
 public:
  explicit Blocks(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Blocks() {
    for (void* const block : blocks_) device_->release(block);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  void* allocate(size_t bytes) {
    blocks_.reserve(blocks_.size() + 1);
    blocks_.push_back(device_->allocate(std::max<size_t>(bytes, 1)));
    return blocks_.back();
  }

 private:
  std::shared_ptr<Device> device_;
  std::vector<void*> blocks_;
};

// The kernel with args in separate memory on the device: the subject of a ScheduleSearch.
class KernelOnDevice {
 public:
  using Schedule = gpu::Schedule;
  using Runner = KernelRunner;

  KernelOnDevice(std::shared_ptr<Device> device, const kernel::Kernel& kernel)
      : device_(std::move(device)), kernel_(kernel), legal_(legal_schedules(kernel, *device_)), blocks_(device_) {
    for (const kernel::Arg& arg : kernel.args) args_.push_back({filled(arg), 0});
  }

  std::unique_ptr<KernelRunner> by_default() const { return under(choose_schedule(kernel_, device_->limits())); }
  std::unique_ptr<KernelRunner> under(const Schedule& schedule) const {
    return std::make_unique<KernelRunner>(device_, kernel_, schedule);
  }
  std::vector<Schedule> neighbours(const Schedule& schedule) const { return legal_.neighbours(schedule); }

  // The minimum of several spans of calls. All calls use the same memory, so data that fit the caches are in them.
  double time(const KernelRunner& runner, double milliseconds) {
    if (scratch_bytes_ < runner.scratch_bytes()) {
      scratch_bytes_ = runner.scratch_bytes();
      scratch_ = blocks_.allocate(scratch_bytes_);
    }
    const Clock::time_point start = Clock::now();
    const auto span = [&](int calls) {
      return device_->time([&](void* stream) {
        for (int call = 0; call < calls; ++call) runner.run(stream, args_, {scratch_, 0});
      });
    };
    const int calls = static_cast<int>(std::clamp(kShortestSpan / std::max(span(1), 1e-4), 1.0, 1000.0));
    double least = std::numeric_limits<double>::max();
    do {
      least = std::min(least, span(calls) / calls);
    } while (std::chrono::duration<double, std::milli>(Clock::now() - start).count() < milliseconds);
    return std::max(1000 * least, 1e-3);
  }

 private:
  void* filled(const kernel::Arg& arg) {
    const int64_t elements = kernel::span_of(kernel_, arg);
    const auto bytes = static_cast<size_t>(bytes_of(arg.dtype, elements));
    const std::vector<std::byte> pattern =
        ordinary_values(kernel_, arg, std::max<int64_t>(kPattern, static_cast<int64_t>(arg.table.size())));
    void* const memory = blocks_.allocate(bytes);
    for (size_t at = 0; at < bytes; at += pattern.size())
      device_->copy_in(nullptr, memory, static_cast<int64_t>(at), pattern.data(), std::min(pattern.size(), bytes - at));
    return memory;
  }

  std::shared_ptr<Device> device_;
  const kernel::Kernel& kernel_;
  LegalSchedules legal_;
  Blocks blocks_;
  std::vector<BufferView> args_;
  void* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
};

}  // namespace

TunedSchedule<Schedule> tune_kernel(const std::shared_ptr<Device>& device, const kernel::Kernel& kernel, double milliseconds,
                                    const TuningProgress& progress) {
  KernelOnDevice subject(device, kernel);
  return ScheduleSearch(subject, milliseconds, progress).run();
}

size_t tune_plan(const std::shared_ptr<Device>& device, const kernel::Plan& plan, const TuningRequest& request) {
  return tune_kernels(
      plan, request, [&](const kernel::Kernel& kernel) { return find_tuned<Schedule>(kernel, *device).has_value(); },
      [&](const kernel::Kernel& kernel, const TuningProgress& progress) {
        store_tuned(kernel, *device, tune_kernel(device, kernel, request.milliseconds, progress));
      });
}

}  // namespace lamina::gpu
