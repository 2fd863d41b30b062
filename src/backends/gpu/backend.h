// The GPU backend: partitions become plans of generated kernels on one device.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/gpu/device.h"

namespace lamina::gpu {

std::shared_ptr<const Backend> make_backend(std::shared_ptr<Device> device);

}  // namespace lamina::gpu
