// CUDA devices, through the driver API.
#pragma once

#include <memory>
#include <string>

#include "backends/gpu/cuda/api.h"
#include "backends/gpu/device.h"

namespace lamina::gpu::cuda {

struct FoundDevices {
  size_t count = 0;
  std::string why_none;  // set if there is none: no driver, a driver that is too old, no device, no NVRTC
};
FoundDevices find_devices();
FoundDevices find_devices(const DriverApi& driver);

// Uses the device's primary context, or the caller's (which is not retained and must outlive the device). Throws Error.
std::shared_ptr<Device> open_device(int ordinal, CUcontext context = nullptr);
std::shared_ptr<Device> open_device(const DriverApi& driver, const NvrtcApi& nvrtc, int ordinal, CUcontext context = nullptr);

}  // namespace lamina::gpu::cuda
