#include "backends/gpu/cuda/device_runtime.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <vector>

#include "backends/gpu/cuda/blas_lt.h"
#include "backends/gpu/cuda/compile.h"
#include "backends/gpu/cuda/context.h"
#include "backends/gpu/module_cache.h"
#include "handles/locks.h"
#include "interface/per_thread.h"
#include "interface/status.h"

namespace lamina::gpu::cuda {

namespace {

// An event in the current context.
class OwnedEvent {
 public:
  OwnedEvent(const DriverApi& driver, unsigned flags) : driver_(driver) {
    check(driver, driver.create_event(&event_, flags), "cuEventCreate");
  }
  ~OwnedEvent() { driver_.destroy_event(event_); }
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  CUevent get() const { return event_; }

 private:
  const DriverApi& driver_;
  CUevent event_ = nullptr;
};

class CudaEvent final : public Event {
 public:
  CudaEvent(const DriverApi& driver, std::shared_ptr<const Context> context) : driver_(driver), context_(std::move(context)) {
    const CurrentContext current(driver, context_->get());
    check(driver, driver.create_event(&event_, kEventWithoutTiming), "cuEventCreate");
  }
  ~CudaEvent() override {
    CUcontext ignored = nullptr;
    if (driver_.push_context(context_->get()) != 0) return;
    driver_.destroy_event(event_);
    driver_.pop_context(&ignored);
  }
  void record(void* stream) override {
    const CurrentContext current(driver_, context_->get());
    check(driver_, driver_.record_event(event_, context_->stream(stream)), "cuEventRecord");
  }
  bool is_complete() const override {
    const CurrentContext current(driver_, context_->get());
    const CUresult result = driver_.query_event(event_);
    if (result != kNotReady) check(driver_, result, "cuEventQuery");
    return result == 0;
  }
  void wait() const override {
    const CurrentContext current(driver_, context_->get());
    check(driver_, driver_.synchronize_event(event_), "cuEventSynchronize");
  }
  void hold_back(void* stream) const override {
    const CurrentContext current(driver_, context_->get());
    check(driver_, driver_.hold_back_stream(context_->stream(stream), event_, 0), "cuStreamWaitEvent");
  }

 private:
  const DriverApi& driver_;
  std::shared_ptr<const Context> context_;
  CUevent event_ = nullptr;
};

// The parameters of a launch. They are reused, so that only a thread's first launch allocates.
struct Parameters {
  std::vector<int64_t> values;  // every parameter is eight bytes wide
  std::vector<void*> pointers;
};

class CudaModule final : public Module {
 public:
  CudaModule(const DriverApi& driver, std::shared_ptr<const Context> context, const KernelSource& source, const Image& image)
      : driver_(driver), context_(std::move(context)), local_bytes_(source.local_bytes) {
    local_bytes_.resize(source.symbols.size());
    const CurrentContext current(driver, context_->get());
    check(driver, driver.load_module(&module_, image.data.data()), "cuModuleLoadData");
    for (const std::string& symbol : source.symbols) {
      CUfunction function = nullptr;
      const CUresult found = driver.module_function(&function, module_, symbol.c_str());
      if (found != 0) driver.unload_module(module_);
      check(driver, found, "cuModuleGetFunction", join(" of ", symbol));
      const int bytes = local_bytes_[functions_.size()];
      if (bytes > kLocalBytes) allow_local_memory(function, bytes);
      functions_.push_back(function);
    }
  }
  ~CudaModule() override {
    CUcontext ignored = nullptr;
    if (driver_.push_context(context_->get()) != 0) return;
    driver_.unload_module(module_);
    driver_.pop_context(&ignored);
  }

  void launch(void* stream, size_t function, int64_t groups, int group_size, std::span<const BufferView> buffers,
              std::span<const int64_t> words) const override {
    auto& [values, pointers] = PerThread<CudaModule, Parameters>::get();
    values.clear();
    pointers.clear();
    for (const BufferView& view : buffers) {
      values.push_back(static_cast<int64_t>(pointer_of(view.memory)));
      values.push_back(view.offset);
    }
    values.insert(values.end(), words.begin(), words.end());
    for (int64_t& value : values) pointers.push_back(&value);
    const CurrentContext current(driver_, context_->get());
    check(driver_,
          driver_.launch_kernel(functions_.at(function), static_cast<unsigned>(groups), 1, 1, static_cast<unsigned>(group_size),
                                1, 1, static_cast<unsigned>(local_bytes_.at(function)), context_->stream(stream),
                                pointers.data(), nullptr),
          "cuLaunchKernel");
  }

 private:
  void allow_local_memory(CUfunction function, int bytes) {
    const CUresult allowed = driver_.set_attribute(function, kDynamicLocalBytes, bytes);
    if (allowed != 0) driver_.unload_module(module_);
    check(driver_, allowed, "cuFuncSetAttribute", join(" of ", bytes, " bytes"));
  }

  const DriverApi& driver_;
  std::shared_ptr<const Context> context_;
  std::vector<int> local_bytes_;  // per function
  CUmodule module_ = nullptr;
  std::vector<CUfunction> functions_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(const DriverApi& driver, const NvrtcApi& nvrtc, int ordinal, CUcontext given) : driver_(driver), nvrtc_(nvrtc) {
    CUdevice device = 0;
    check(driver, driver.device_get(&device, ordinal), "cuDeviceGet", join(" of device ", ordinal));
    std::array<char, 256> text{};
    check(driver, driver.device_name(text.data(), static_cast<int>(text.size()) - 1, device), "cuDeviceGetName");
    name_ = text.data();
    const auto attribute = [&](int what) {
      int value = 0;
      check(driver, driver.device_attribute(&value, what, device), "cuDeviceGetAttribute");
      return value;
    };
    capability_ = attribute(kComputeCapabilityMajor) * 10 + attribute(kComputeCapabilityMinor);
    if (capability_ < kOldestCapability) {
      throw Error(Status::unimplemented, join("CUDA: ", name_, " has compute capability ", capability_ / 10, ".",
                                              capability_ % 10, "; 8.0 or newer is needed"));
    }
    limits_.max_group = std::min(attribute(kMaxThreadsPerBlock), 1024);
    limits_.compute_units = attribute(kMultiprocessorCount);
    limits_.local_bytes = std::max(attribute(kMostLocalBytes), kLocalBytes);
    limits_.copies_beside_threads = true;
    limits_.cluster_groups = most_groups_of_cluster(nvrtc, capability_);
    limits_.multiplies_by_four_warps = has_instructions_of_four_warps(nvrtc, capability_);
    context_ = std::make_shared<const Context>(driver, device, given);
  }

  std::string_view api() const override { return "cuda"; }
  std::string name() const override { return name_; }
  const Language& language() const override { return languages::cuda; }
  DeviceLimits limits() const override { return limits_; }
  bool needs_alignment() const override { return true; }

  LoadedModule load(const KernelSource& source) override {
    return modules_.get(source.text, [&]() -> LoadedModule {
      const Image image = compile(nvrtc_, source.symbol, source.text, capability_, CodeCache::from_environment());
      return {std::make_shared<CudaModule>(driver_, context_, source, image), image.from_cache};
    });
  }

  void* allocate(size_t bytes) override {
    const CurrentContext current(driver_, context_->get());
    CUdeviceptr pointer = 0;
    check(driver_, driver_.allocate(&pointer, std::max<size_t>(bytes, 1)), "cuMemAlloc", join(" of ", bytes, " bytes"));
    return handle_of(pointer);
  }
  void release(void* memory) override {
    CUcontext ignored = nullptr;
    if (driver_.push_context(context_->get()) != 0) return;
    driver_.release(pointer_of(memory));
    driver_.pop_context(&ignored);
  }
  void copy_in(void* stream, void* memory, int64_t offset, const void* host, size_t bytes) override {
    if (bytes == 0) return;
    const CurrentContext current(driver_, context_->get());
    check(driver_,
          driver_.copy_in(pointer_of(memory) + static_cast<CUdeviceptr>(offset), host, bytes, context_->stream(stream)),
          "cuMemcpyHtoDAsync");
    check(driver_, driver_.synchronize_stream(context_->stream(stream)), "cuStreamSynchronize");
  }
  // Uses memory sets, whose value is a parameter of the call. A copy from host memory would have to block.
  void put(void* stream, void* memory, int64_t offset, const void* value, size_t bytes) override {
    const CurrentContext current(driver_, context_->get());
    const CUdeviceptr to = pointer_of(memory) + static_cast<CUdeviceptr>(offset);
    CUstream const queue = context_->stream(stream);
    const auto part = [&]<typename Word>(Word word, size_t at) {
      std::memcpy(&word, static_cast<const std::byte*>(value) + at, sizeof word);
      return word;
    };
    if (bytes == 1) return check(driver_, driver_.set_bytes(to, part(uint8_t{}, 0), 1, queue), "cuMemsetD8Async");
    if (bytes == 2) return check(driver_, driver_.set_halves(to, part(uint16_t{}, 0), 1, queue), "cuMemsetD16Async");
    LAMINA_CHECK(bytes == 4 || bytes == kMaxValueBytes, join("a value of ", bytes, " bytes"));
    for (size_t at = 0; at < bytes; at += 4)
      check(driver_, driver_.set_words(to + at, part(uint32_t{}, at), 1, queue), "cuMemsetD32Async");
  }
  void copy_out(void* stream, void* host, void* memory, int64_t offset, size_t bytes) override {
    if (bytes == 0) return;
    const CurrentContext current(driver_, context_->get());
    check(driver_,
          driver_.copy_out(host, pointer_of(memory) + static_cast<CUdeviceptr>(offset), bytes, context_->stream(stream)),
          "cuMemcpyDtoHAsync");
    check(driver_, driver_.synchronize_stream(context_->stream(stream)), "cuStreamSynchronize");
  }
  void copy(void* stream, void* to, void* from, size_t bytes) override {
    const CurrentContext current(driver_, context_->get());
    check(driver_, driver_.copy(pointer_of(to), pointer_of(from), bytes, context_->stream(stream)), "cuMemcpyDtoDAsync");
  }
  double time(const std::function<void(void* stream)>& work) override {
    const CurrentContext current(driver_, context_->get());
    const OwnedEvent start(driver_, 0), stop(driver_, 0);
    check(driver_, driver_.record_event(start.get(), context_->stream(nullptr)), "cuEventRecord");
    work(nullptr);
    check(driver_, driver_.record_event(stop.get(), context_->stream(nullptr)), "cuEventRecord");
    check(driver_, driver_.synchronize_event(stop.get()), "cuEventSynchronize");
    float milliseconds = 0;
    check(driver_, driver_.elapsed_time(&milliseconds, start.get(), stop.get()), "cuEventElapsedTime");
    return static_cast<double>(milliseconds);
  }
  void wait(void* stream) override {
    const CurrentContext current(driver_, context_->get());
    check(driver_, driver_.synchronize_stream(context_->stream(stream)), "cuStreamSynchronize");
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<CudaEvent>(driver_, context_); }

  std::vector<std::shared_ptr<const StepLibrary>> libraries(std::shared_ptr<const StepLibrary> generated) override {
    std::vector<std::shared_ptr<const StepLibrary>> requested;
    if (asks_for_blas_lt())
      requested.push_back(std::make_shared<const BlasLtProducts>([this] { return blas_lt(); }, std::move(generated)));
    return requested;
  }

 private:
  // The first product that requests it opens the library.
  std::shared_ptr<const BlasLt> blas_lt() {
    const std::lock_guard lock(mutex_);
    if (blas_lt_ != nullptr) return blas_lt_;
    std::string why;
    const LtApi* const api = lt_api(why);
    if (api == nullptr) throw Error(Status::unimplemented, join("LAMINA_CUBLASLT=1 asks for cuBLASLt; ", why));
    return blas_lt_ = std::make_shared<const BlasLt>(*api, driver_, context_);
  }

  const DriverApi& driver_;
  const NvrtcApi& nvrtc_;
  std::string name_;
  int capability_ = 0;
  DeviceLimits limits_;
  std::shared_ptr<const Context> context_;
  ModuleCache modules_;
  Mutex mutex_{LockRow::gpu_code};  // guards blas_lt_
  std::shared_ptr<const BlasLt> blas_lt_;
};

}  // namespace

FoundDevices find_devices(const DriverApi& driver) {
  FoundDevices found;
  int version = 0, count = 0;
  const CUresult started = driver.init(0);
  if (started != 0) {
    found.why_none = join("cuInit failed with ", text_of(driver, started));
  } else if (const CUresult result = driver.driver_version(&version); result != 0) {
    found.why_none = join("cuDriverGetVersion failed with ", text_of(driver, result));
  } else if (version < kOldestDriver) {
    found.why_none = join("the driver is for CUDA ", version / 1000, ".", version % 1000 / 10, ", 11.2 or newer is needed");
  } else if (const CUresult counted = driver.device_count(&count); counted != 0) {
    found.why_none = join("cuDeviceGetCount failed with ", text_of(driver, counted));
  } else if (count == 0) {
    found.why_none = "the driver reports no device";
  } else {
    found.count = static_cast<size_t>(count);
  }
  return found;
}

FoundDevices find_devices() {
  FoundDevices found;
  const DriverApi* const driver = driver_api(found.why_none);
  if (driver == nullptr) return found;
  found = find_devices(*driver);
  if (found.count > 0 && nvrtc_api(found.why_none) == nullptr) found.count = 0;
  return found;
}

std::shared_ptr<Device> open_device(const DriverApi& driver, const NvrtcApi& nvrtc, int ordinal, CUcontext context) {
  return std::make_shared<CudaDevice>(driver, nvrtc, ordinal, context);
}

std::shared_ptr<Device> open_device(int ordinal, CUcontext context) {
  std::string why;
  const DriverApi* const driver = driver_api(why);
  if (driver == nullptr) throw Error(Status::runtime_error, why);
  const FoundDevices found = find_devices(*driver);
  if (found.count == 0) throw Error(Status::runtime_error, "CUDA: " + found.why_none);
  const NvrtcApi* const nvrtc = nvrtc_api(why);
  if (nvrtc == nullptr) throw Error(Status::runtime_error, why);
  return open_device(*driver, *nvrtc, ordinal, context);
}

}  // namespace lamina::gpu::cuda
