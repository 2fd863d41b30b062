// Opens a GPU by its name on the command line: "cuda", "cuda:1", "opencl", "opencl:0", or "" for the first one, CUDA before
// OpenCL.
#pragma once

#include <memory>
#include <string>

#include "backends/gpu/device.h"

namespace lamina::gpu {

// Throws unimplemented with the reason if no device can be used, and invalid_arguments for an invalid name.
std::shared_ptr<Device> open_device(const std::string& name);

}  // namespace lamina::gpu
