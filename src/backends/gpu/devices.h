// Opening a GPU by its name on the command line: "cuda", "cuda:1", "opencl", "opencl:0", or "" for the first of all, CUDA
// before OpenCL.
#pragma once

#include <memory>
#include <string>

#include "backends/gpu/device.h"

namespace lamina::gpu {

// Throws unimplemented, with the reason, where no device can be used, and invalid_arguments for a name that means none.
std::shared_ptr<Device> open_device(const std::string& name);

}  // namespace lamina::gpu
