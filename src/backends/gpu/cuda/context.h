// Contexts, streams and result codes of the CUDA driver. Not part of the module's interface.
#pragma once

#include <cstdint>
#include <string>

#include "backends/gpu/cuda/api.h"
#include "interface/status.h"

namespace lamina::gpu::cuda {

inline std::string text_of(const DriverApi& driver, CUresult result) {
  const char* name = nullptr;
  if (driver.error_name(result, &name) != 0 || name == nullptr) return join("error ", result);
  return name;
}

// Throws Error(out_of_memory) or Error(runtime_error) with the function's name and its result.
inline void check(const DriverApi& driver, CUresult result, const char* function, const std::string& detail = "") {
  if (result == 0) return;
  throw Error(result == kOutOfMemory ? Status::out_of_memory : Status::runtime_error,
              join("CUDA: ", function, detail, " failed with ", text_of(driver, result)));
}

// Converts between device pointers and the handles that the other files of the module use.
inline CUdeviceptr pointer_of(void* memory) { return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(memory)); }
inline void* handle_of(CUdeviceptr pointer) { return reinterpret_cast<void*>(static_cast<uintptr_t>(pointer)); }

class CurrentContext {
 public:
  CurrentContext(const DriverApi& driver, CUcontext context) : driver_(driver) {
    check(driver, driver.push_context(context), "cuCtxPushCurrent");
  }
  ~CurrentContext() {
    CUcontext ignored = nullptr;
    driver_.pop_context(&ignored);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const DriverApi& driver_;
};

// The device's primary context or the caller's, and a stream for callers that have none.
class Context {
 public:
  Context(const DriverApi& driver, CUdevice device, CUcontext given)
      : driver_(driver), device_(device), context_(given), own_(given == nullptr) {
    if (own_) check(driver, driver.retain_primary_context(&context_, device), "cuDevicePrimaryCtxRetain");
    try {
      const CurrentContext current(driver, context_);
      check(driver, driver.create_stream(&stream_, 0), "cuStreamCreate");
    } catch (const Error&) {
      if (own_) driver.release_primary_context(device);
      throw;
    }
  }
  ~Context() {
    if (driver_.push_context(context_) == 0) {
      driver_.destroy_stream(stream_);
      CUcontext ignored = nullptr;
      driver_.pop_context(&ignored);
    }
    if (own_) driver_.release_primary_context(device_);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  CUcontext get() const { return context_; }
  CUstream stream(void* given) const { return given == nullptr ? stream_ : static_cast<CUstream>(given); }

 private:
  const DriverApi& driver_;
  CUdevice device_;
  CUcontext context_;
  bool own_;
  CUstream stream_ = nullptr;
};

}  // namespace lamina::gpu::cuda
