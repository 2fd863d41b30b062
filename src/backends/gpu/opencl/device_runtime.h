// OpenCL devices. All devices of an ICD are supported: GPUs first, then accelerators and CPUs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/device.h"
#include "backends/gpu/opencl/api.h"

namespace lamina::gpu::opencl {

struct FoundDevices {
  std::vector<cl_device_id> devices;
  std::string why_none;  // set when the list is empty
};
FoundDevices find_devices();
FoundDevices find_devices(const Api& cl);

// Uses a new context, or the caller's (which is retained).
std::shared_ptr<Device> open_device(cl_device_id device, cl_context context = nullptr);
std::shared_ptr<Device> open_device(const Api& cl, cl_device_id device, cl_context context = nullptr);

}  // namespace lamina::gpu::opencl
