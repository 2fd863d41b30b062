// OpenCL for callers of lamina: tests that create a context and a queue of their own.
#pragma once

#include <dlfcn.h>

#include <cstdint>

#include "graph/opencl.h"

namespace api_test {

// The OpenCL functions that a caller needs for its own objects; the loader is opened in the same way as lamina opens it.
struct Opencl {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  template <typename Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library, name));
  }
  cl_device_id first_device() const {
    const auto platforms = find<int (*)(unsigned, void**, unsigned*)>("clGetPlatformIDs");
    const auto devices = find<int (*)(void*, uint64_t, unsigned, cl_device_id*, unsigned*)>("clGetDeviceIDs");
    void* platform = nullptr;
    cl_device_id device = nullptr;
    unsigned count = 0;
    if (platforms(1, &platform, &count) != 0 || devices(platform, 0xffffffff, 1, &device, &count) != 0) return nullptr;
    return device;
  }
};

}  // namespace api_test
