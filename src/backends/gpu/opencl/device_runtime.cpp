#include "backends/gpu/opencl/device_runtime.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "backends/gpu/module_cache.h"
#include "backends/gpu/shared_object.h"
#include "handles/locks.h"
#include "interface/status.h"

namespace lamina::gpu::opencl {

const Api* api(std::string& why) {
  static const LoadedApi<Api> loaded("the OpenCL loader", {"libOpenCL.so.1", "libOpenCL.so"},
                                     [](SharedObject& library, Api& table) {
#define LAMINA_FIND(result, name, parameters) &&library.find("cl" #name, table.name)
                                       return true LAMINA_OPENCL_FUNCTIONS(LAMINA_FIND);
#undef LAMINA_FIND
                                     });
  return loaded.table(why);
}

namespace {

void check(cl_int status, const char* function) {
  if (status == 0) return;
  const bool memory = status == kMemObjectAllocationFailure || status == kOutOfResources || status == kOutOfHostMemory;
  throw Error(memory ? Status::out_of_memory : Status::runtime_error, join("OpenCL: ", function, " failed with ", status));
}

template <typename T>
T device_info(const Api& cl, cl_device_id device, cl_uint what) {
  T value{};
  check(cl.GetDeviceInfo(device, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

// An object of the driver, released at the end of the scope.
template <typename T>
using Owned = std::unique_ptr<T, cl_int (*)(T*)>;

class OpenclModule final : public Module {
 public:
  OpenclModule(const Api& cl, cl_context context, cl_device_id device, cl_command_queue queue, const KernelSource& source,
               const std::string& options)
      : cl_(cl), queue_(queue), program_(nullptr, cl.ReleaseProgram) {
    const char* text = source.text.c_str();
    const size_t size = source.text.size();
    cl_int status = 0;
    program_.reset(cl.CreateProgramWithSource(context, 1, &text, &size, &status));
    check(status, "clCreateProgramWithSource");
    if (const cl_int built = cl.BuildProgram(program_.get(), 1, &device, options.c_str(), nullptr, nullptr); built != 0) {
      throw Error(Status::runtime_error, join("bug in lamina: OpenCL does not compile ", source.symbol,
                                              ", clBuildProgram failed with ", built, ":\n", build_log(device)));
    }
    for (const std::string& symbol : source.symbols) {
      functions_.emplace_back(cl.CreateKernel(program_.get(), symbol.c_str(), &status), cl.ReleaseKernel);
      check(status, "clCreateKernel");
    }
  }

  // A kernel object stores its arguments, so only one launch at a time may set them and enqueue it.
  void launch(void* stream, size_t function, int64_t groups, int group_size, std::span<const BufferView> buffers,
              std::span<const int64_t> words) const override {
    const std::lock_guard lock(mutex_);
    cl_kernel const kernel = functions_.at(function).get();
    cl_uint index = 0;
    const auto set = [&](size_t size, const void* value) {
      check(cl_.SetKernelArg(kernel, index++, size, value), "clSetKernelArg");
    };
    for (const BufferView& view : buffers) {
      set(sizeof(cl_mem), &view.memory);
      set(sizeof(int64_t), &view.offset);
    }
    for (const int64_t& word : words) set(sizeof word, &word);
    const auto local = static_cast<size_t>(group_size);
    const size_t global = static_cast<size_t>(groups) * local;
    auto* const queue = stream == nullptr ? queue_ : static_cast<cl_command_queue>(stream);
    check(cl_.EnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), "clEnqueueNDRangeKernel");
  }

 private:
  std::string build_log(cl_device_id device) const {
    size_t size = 0;
    cl_.GetProgramBuildInfo(program_.get(), device, kProgramBuildLog, 0, nullptr, &size);
    std::string log(size, ' ');
    cl_.GetProgramBuildInfo(program_.get(), device, kProgramBuildLog, size, log.data(), nullptr);
    return log;
  }

  const Api& cl_;
  cl_command_queue queue_;
  Owned<_cl_program> program_;
  std::vector<Owned<_cl_kernel>> functions_;
  mutable Mutex mutex_{LockRow::gpu_memory};
};

// `queue` is used for null streams.
class OpenclEvent final : public Event {
 public:
  OpenclEvent(const Api& cl, cl_command_queue queue) : cl_(cl), queue_(queue), event_(nullptr, cl.ReleaseEvent) {}

  void record(void* stream) override {
    cl_event recorded = nullptr;
    check(cl_.EnqueueMarkerWithWaitList(queue_of(stream), 0, nullptr, &recorded), "clEnqueueMarkerWithWaitList");
    event_.reset(recorded);
  }
  bool is_complete() const override {
    if (event_ == nullptr) return true;
    cl_int status = 0;
    check(cl_.GetEventInfo(event_.get(), kEventCommandExecutionStatus, sizeof status, &status, nullptr), "clGetEventInfo");
    return status <= kComplete;
  }
  void wait() const override {
    cl_event const event = event_.get();
    if (event != nullptr) check(cl_.WaitForEvents(1, &event), "clWaitForEvents");
  }
  void hold_back(void* stream) const override {
    cl_event const event = event_.get();
    if (event == nullptr) return;
    check(cl_.EnqueueBarrierWithWaitList(queue_of(stream), 1, &event, nullptr), "clEnqueueBarrierWithWaitList");
  }

 private:
  cl_command_queue queue_of(void* stream) const { return stream == nullptr ? queue_ : static_cast<cl_command_queue>(stream); }

  const Api& cl_;
  cl_command_queue queue_;
  Owned<_cl_event> event_;
};

class OpenclDevice final : public Device {
 public:
  OpenclDevice(const Api& cl, cl_device_id device, cl_context context)
      : cl_(cl), device_(device), context_(nullptr, cl.ReleaseContext), queue_(nullptr, cl.ReleaseCommandQueue) {
    cl_int status = 0;
    if (context != nullptr) {
      check(cl.RetainContext(context), "clRetainContext");
      context_.reset(context);
    } else {
      context_.reset(cl.CreateContext(nullptr, 1, &device, nullptr, nullptr, &status));
      check(status, "clCreateContext");
    }
    queue_.reset(cl.CreateCommandQueue(context_.get(), device, 0, &status));
    check(status, "clCreateCommandQueue");
    name_ = read_name();
    limits_.max_group = static_cast<int>(std::min<size_t>(device_info<size_t>(cl, device, kDeviceMaxWorkGroupSize), 1024));
    limits_.compute_units = static_cast<int>(device_info<cl_uint>(cl, device, kDeviceMaxComputeUnits));
    limits_.has_f64 = device_info<cl_ulong>(cl, device, kDeviceDoubleFpConfig) != 0;
    // A group that adds column sums needs two doubles per thread in local memory.
    while (limits_.max_group > 32 &&
           static_cast<cl_ulong>(limits_.max_group) * 16 > device_info<cl_ulong>(cl, device, kDeviceLocalMemSize))
      limits_.max_group /= 2;
    options_ = "-cl-std=CL1.2";
    if ((device_info<cl_ulong>(cl, device, kDeviceSingleFpConfig) & kFpCorrectlyRoundedDivideSqrt) != 0)
      options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  }

  std::string_view api() const override { return "opencl"; }
  std::string name() const override { return name_; }
  const Language& language() const override { return languages::opencl; }
  DeviceLimits limits() const override { return limits_; }
  bool needs_alignment() const override { return false; }
  BufferView in_whole_buffer(BufferView view) const override {
    auto* const memory = static_cast<cl_mem>(view.memory);
    const auto ask = [&](cl_uint what, auto& answer) {
      check(cl_.GetMemObjectInfo(memory, what, sizeof answer, &answer, nullptr), "clGetMemObjectInfo");
    };
    cl_mem whole = nullptr;
    ask(kMemAssociatedMemObject, whole);
    if (whole == nullptr) return view;
    size_t origin = 0;
    ask(kMemOffset, origin);
    return {whole, view.offset + static_cast<int64_t>(origin)};
  }

  LoadedModule load(const KernelSource& source) override {
    return modules_.get(source.text, [&]() -> LoadedModule {
      return {std::make_shared<OpenclModule>(cl_, context_.get(), device_, queue_.get(), source, options_), false};
    });
  }

  void* allocate(size_t bytes) override {
    cl_int status = 0;
    cl_mem const memory = cl_.CreateBuffer(context_.get(), kMemReadWrite, std::max<size_t>(bytes, 1), nullptr, &status);
    if (status != 0)
      throw Error(Status::out_of_memory, join("OpenCL: clCreateBuffer of ", bytes, " bytes failed with ", status));
    return memory;
  }
  void release(void* memory) override { cl_.ReleaseMemObject(static_cast<cl_mem>(memory)); }
  void copy_in(void* stream, void* memory, int64_t offset, const void* host, size_t bytes) override {
    if (bytes == 0) return;
    check(cl_.EnqueueWriteBuffer(queue(stream), static_cast<cl_mem>(memory), 1, static_cast<size_t>(offset), bytes, host, 0,
                                 nullptr, nullptr),
          "clEnqueueWriteBuffer");
  }
  void put(void* stream, void* memory, int64_t offset, const void* value, size_t bytes) override {
    check(cl_.EnqueueFillBuffer(queue(stream), static_cast<cl_mem>(memory), value, bytes, static_cast<size_t>(offset), bytes, 0,
                                nullptr, nullptr),
          "clEnqueueFillBuffer");
  }
  void copy_out(void* stream, void* host, void* memory, int64_t offset, size_t bytes) override {
    if (bytes == 0) return;
    check(cl_.EnqueueReadBuffer(queue(stream), static_cast<cl_mem>(memory), 1, static_cast<size_t>(offset), bytes, host, 0,
                                nullptr, nullptr),
          "clEnqueueReadBuffer");
  }
  void copy(void* stream, void* to, void* from, size_t bytes) override {
    check(cl_.EnqueueCopyBuffer(queue(stream), static_cast<cl_mem>(from), static_cast<cl_mem>(to), 0, 0, bytes, 0, nullptr,
                                nullptr),
          "clEnqueueCopyBuffer");
  }
  double time(const std::function<void(void* stream)>& work) override {
    wait(nullptr);
    cl_int status = 0;
    const Owned<_cl_command_queue> timed(cl_.CreateCommandQueue(context_.get(), device_, kQueueProfilingEnable, &status),
                                         cl_.ReleaseCommandQueue);
    check(status, "clCreateCommandQueue");
    const Owned<_cl_event> start = marker(timed.get());
    work(timed.get());
    const Owned<_cl_event> stop = marker(timed.get());
    check(cl_.Finish(timed.get()), "clFinish");
    const cl_ulong begin = end_of(start.get()), end = end_of(stop.get());
    return static_cast<double>(end - begin) * 1e-6;
  }
  void wait(void* stream) override { check(cl_.Finish(queue(stream)), "clFinish"); }
  std::unique_ptr<Event> make_event() override { return std::make_unique<OpenclEvent>(cl_, queue_.get()); }

 private:
  cl_command_queue queue(void* stream) const {
    return stream == nullptr ? queue_.get() : static_cast<cl_command_queue>(stream);
  }
  Owned<_cl_event> marker(cl_command_queue queue) const {
    cl_event recorded = nullptr;
    check(cl_.EnqueueMarkerWithWaitList(queue, 0, nullptr, &recorded), "clEnqueueMarkerWithWaitList");
    return {recorded, cl_.ReleaseEvent};
  }
  // In nanoseconds of the device's clock. The event's queue keeps times.
  cl_ulong end_of(cl_event event) const {
    cl_ulong end = 0;
    check(cl_.GetEventProfilingInfo(event, kProfilingCommandEnd, sizeof end, &end, nullptr), "clGetEventProfilingInfo");
    return end;
  }
  std::string read_name() const {
    std::array<char, 256> text{};
    check(cl_.GetDeviceInfo(device_, kDeviceName, text.size() - 1, text.data(), nullptr), "clGetDeviceInfo");
    return text.data();
  }

  const Api& cl_;
  cl_device_id device_;
  Owned<_cl_context> context_;
  Owned<_cl_command_queue> queue_;
  std::string name_, options_;
  DeviceLimits limits_;
  ModuleCache modules_;
};

// A device whose type cannot be queried is listed too. Opening it reports why it cannot be used.
bool is_gpu(const Api& cl, cl_device_id device) {
  cl_ulong type = 0;
  return cl.GetDeviceInfo(device, kDeviceType, sizeof type, &type, nullptr) == 0 && (type & kDeviceTypeGpu) != 0;
}

}  // namespace

FoundDevices find_devices() {
  FoundDevices found;
  const Api* const cl = api(found.why_none);
  return cl == nullptr ? found : find_devices(*cl);
}

FoundDevices find_devices(const Api& cl) {
  FoundDevices found;
  std::array<cl_platform_id, 16> platforms;
  cl_uint platform_count = 0;
  if (cl.GetPlatformIDs(static_cast<cl_uint>(platforms.size()), platforms.data(), &platform_count) != 0) platform_count = 0;
  for (cl_uint p = 0; p < std::min<cl_uint>(platform_count, static_cast<cl_uint>(platforms.size())); ++p) {
    std::array<cl_device_id, 16> devices;
    cl_uint count = 0;
    if (cl.GetDeviceIDs(platforms[p], kDeviceTypeAll, static_cast<cl_uint>(devices.size()), devices.data(), &count) != 0)
      continue;
    found.devices.insert(found.devices.end(), devices.begin(),
                         devices.begin() + std::min<cl_uint>(count, static_cast<cl_uint>(devices.size())));
  }
  std::stable_partition(found.devices.begin(), found.devices.end(), [&](cl_device_id device) { return is_gpu(cl, device); });
  if (found.devices.empty()) found.why_none = "no OpenCL platform reports a device";
  return found;
}

std::shared_ptr<Device> open_device(const Api& cl, cl_device_id device, cl_context context) {
  return std::make_shared<OpenclDevice>(cl, device, context);
}

std::shared_ptr<Device> open_device(cl_device_id device, cl_context context) {
  std::string why;
  const Api* const cl = api(why);
  if (cl == nullptr) throw Error(Status::runtime_error, why);
  return open_device(*cl, device, context);
}

}  // namespace lamina::gpu::opencl
