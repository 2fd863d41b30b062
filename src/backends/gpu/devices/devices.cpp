// Lists the GPUs, and creates a backend for each.
#include "backends/gpu/devices/devices.h"

#include <charconv>

#include "backends/backend.h"
#include "backends/gpu/backend.h"
#include "backends/gpu/cuda/device_runtime.h"
#include "backends/gpu/opencl/device_runtime.h"
#include "interface/status.h"

namespace lamina {

namespace {

struct DeviceName {
  std::string api;
  size_t index = 0;
};

DeviceName parse(const std::string& text) {
  const size_t colon = text.find(':');
  DeviceName name{text.substr(0, colon), 0};
  bool good = name.api.empty() || name.api == "cuda" || name.api == "opencl";
  if (colon != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, name.index);
    good = good && !name.api.empty() && error == std::errc{} && stop == end;
  }
  if (!good)
    throw Error(Status::invalid_arguments,
                join("device \"", text, "\": allowed is cuda, opencl, or one of them with a number, as in cuda:1"));
  return name;
}

}  // namespace

size_t gpu_device_count() { return gpu::cuda::find_devices().count + gpu::opencl::find_devices().devices.size(); }

std::shared_ptr<gpu::Device> gpu::open_device(const std::string& device) {
  const DeviceName name = parse(device);
  const auto cuda = name.api == "opencl" ? gpu::cuda::FoundDevices{} : gpu::cuda::find_devices();
  const auto opencl = name.api == "cuda" ? gpu::opencl::FoundDevices{} : gpu::opencl::find_devices();
  if (name.index < cuda.count) return gpu::cuda::open_device(static_cast<int>(name.index));
  const size_t index = name.index - cuda.count;
  if (index < opencl.devices.size()) return gpu::opencl::open_device(opencl.devices[index]);
  const size_t count = cuda.count + opencl.devices.size();
  if (count > 0) throw Error(Status::invalid_arguments, join("device \"", device, "\": the number must be 0..", count - 1));
  std::string why;
  if (name.api != "opencl") why += "CUDA: " + cuda.why_none;
  if (name.api != "cuda") why += join(why.empty() ? "" : "; ", "OpenCL: ", opencl.why_none);
  throw Error(Status::unimplemented, join("no GPU can be used: ", why));
}

std::shared_ptr<const Backend> open_gpu_backend(const std::string& device) {
  return gpu::make_backend(gpu::open_device(device));
}

std::shared_ptr<const Backend> open_gpu_backend(size_t index) {
  const size_t cuda = gpu::cuda::find_devices().count;
  return index < cuda ? open_gpu_backend(join("cuda:", index)) : open_gpu_backend(join("opencl:", index - cuda));
}

std::shared_ptr<const Backend> open_cuda_backend(int device, void* context) {
  return gpu::make_backend(gpu::cuda::open_device(device, static_cast<gpu::cuda::CUcontext>(context)));
}

std::shared_ptr<const Backend> open_opencl_backend(void* device, void* context) {
  return gpu::make_backend(
      gpu::opencl::open_device(static_cast<gpu::opencl::cl_device_id>(device), static_cast<gpu::opencl::cl_context>(context)));
}

}  // namespace lamina
