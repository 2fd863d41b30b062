// The parts of the CUDA driver API and of NVRTC that lamina calls. They are looked up at run time, so that building needs
// neither headers nor libraries. Names, values and semantics are NVIDIA's (cuda.h, nvrtc.h). Tests put their own functions
// into the tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct CUctx_st;
struct CUstream_st;
struct CUmod_st;
struct CUfunc_st;
struct CUevent_st;
struct _nvrtcProgram;

namespace lamina::gpu::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = ::CUctx_st*;
using CUstream = ::CUstream_st*;
using CUmodule = ::CUmod_st*;
using CUfunction = ::CUfunc_st*;
using CUevent = ::CUevent_st*;
using nvrtcResult = int;
using nvrtcProgram = ::_nvrtcProgram*;

inline constexpr CUresult kOutOfMemory = 2, kNoDevice = 100, kNotReady = 600;
inline constexpr unsigned kEventWithoutTiming = 2;
inline constexpr int kMaxThreadsPerBlock = 1, kMultiprocessorCount = 16, kComputeCapabilityMajor = 75,
                     kComputeCapabilityMinor = 76, kMostLocalBytes = 97;
inline constexpr int kDynamicLocalBytes = 8;  // attribute of a function
inline constexpr int kLocalBytes = 48 << 10;  // of a work-group without that attribute
inline constexpr int kOldestDriver = 11020;   // CUDA 11.2
inline constexpr int kOldestCapability = 80;

// Every function that lamina calls, as result, symbol, member, parameters. Tables and loaders are generated from these lists.
#define LAMINA_CUDA_FUNCTIONS(F)                                                                                  \
  F(CUresult, cuInit, init, (unsigned))                                                                           \
  F(CUresult, cuDriverGetVersion, driver_version, (int*))                                                         \
  F(CUresult, cuGetErrorName, error_name, (CUresult, const char**))                                               \
  F(CUresult, cuDeviceGetCount, device_count, (int*))                                                             \
  F(CUresult, cuDeviceGet, device_get, (CUdevice*, int))                                                          \
  F(CUresult, cuDeviceGetName, device_name, (char*, int, CUdevice))                                               \
  F(CUresult, cuDeviceGetAttribute, device_attribute, (int*, int, CUdevice))                                      \
  F(CUresult, cuDevicePrimaryCtxRetain, retain_primary_context, (CUcontext*, CUdevice))                           \
  F(CUresult, cuDevicePrimaryCtxRelease_v2, release_primary_context, (CUdevice))                                  \
  F(CUresult, cuCtxPushCurrent_v2, push_context, (CUcontext))                                                     \
  F(CUresult, cuCtxPopCurrent_v2, pop_context, (CUcontext*))                                                      \
  F(CUresult, cuModuleLoadData, load_module, (CUmodule*, const void*))                                            \
  F(CUresult, cuModuleUnload, unload_module, (CUmodule))                                                          \
  F(CUresult, cuModuleGetFunction, module_function, (CUfunction*, CUmodule, const char*))                         \
  F(CUresult, cuFuncSetAttribute, set_attribute, (CUfunction, int, int))                                          \
  F(CUresult, cuLaunchKernel, launch_kernel,                                                                      \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**)) \
  F(CUresult, cuMemAlloc_v2, allocate, (CUdeviceptr*, size_t))                                                    \
  F(CUresult, cuMemFree_v2, release, (CUdeviceptr))                                                               \
  F(CUresult, cuMemsetD8Async, set_bytes, (CUdeviceptr, unsigned char, size_t, CUstream))                         \
  F(CUresult, cuMemsetD16Async, set_halves, (CUdeviceptr, unsigned short, size_t, CUstream))                      \
  F(CUresult, cuMemsetD32Async, set_words, (CUdeviceptr, unsigned, size_t, CUstream))                             \
  F(CUresult, cuMemcpyHtoDAsync_v2, copy_in, (CUdeviceptr, const void*, size_t, CUstream))                        \
  F(CUresult, cuMemcpyDtoHAsync_v2, copy_out, (void*, CUdeviceptr, size_t, CUstream))                             \
  F(CUresult, cuMemcpyDtoDAsync_v2, copy, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                           \
  F(CUresult, cuEventCreate, create_event, (CUevent*, unsigned))                                                  \
  F(CUresult, cuEventDestroy_v2, destroy_event, (CUevent))                                                        \
  F(CUresult, cuEventRecord, record_event, (CUevent, CUstream))                                                   \
  F(CUresult, cuEventSynchronize, synchronize_event, (CUevent))                                                   \
  F(CUresult, cuEventQuery, query_event, (CUevent))                                                               \
  F(CUresult, cuEventElapsedTime, elapsed_time, (float*, CUevent, CUevent))                                       \
  F(CUresult, cuStreamCreate, create_stream, (CUstream*, unsigned))                                               \
  F(CUresult, cuStreamDestroy_v2, destroy_stream, (CUstream))                                                     \
  F(CUresult, cuStreamSynchronize, synchronize_stream, (CUstream))                                                \
  F(CUresult, cuStreamWaitEvent, hold_back_stream, (CUstream, CUevent, unsigned))

#define LAMINA_NVRTC_FUNCTIONS(F)                                                               \
  F(nvrtcResult, nvrtcVersion, version, (int*, int*))                                           \
  F(const char*, nvrtcGetErrorString, error_string, (nvrtcResult))                              \
  F(nvrtcResult, nvrtcGetNumSupportedArchs, supported_count, (int*))                            \
  F(nvrtcResult, nvrtcGetSupportedArchs, supported, (int*))                                     \
  F(nvrtcResult, nvrtcCreateProgram, create_program,                                            \
    (nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*))     \
  F(nvrtcResult, nvrtcDestroyProgram, destroy_program, (nvrtcProgram*))                         \
  F(nvrtcResult, nvrtcCompileProgram, compile_program, (nvrtcProgram, int, const char* const*)) \
  F(nvrtcResult, nvrtcGetPTXSize, ptx_size, (nvrtcProgram, size_t*))                            \
  F(nvrtcResult, nvrtcGetPTX, ptx, (nvrtcProgram, char*))                                       \
  F(nvrtcResult, nvrtcGetCUBINSize, cubin_size, (nvrtcProgram, size_t*))                        \
  F(nvrtcResult, nvrtcGetCUBIN, cubin, (nvrtcProgram, char*))                                   \
  F(nvrtcResult, nvrtcGetProgramLogSize, log_size, (nvrtcProgram, size_t*))                     \
  F(nvrtcResult, nvrtcGetProgramLog, log, (nvrtcProgram, char*))

#define LAMINA_MEMBER(result, symbol, member, parameters) result(*member) parameters = nullptr;
struct DriverApi {
  LAMINA_CUDA_FUNCTIONS(LAMINA_MEMBER)
};
struct NvrtcApi {
  using Program = nvrtcProgram;
  static constexpr const char *name = "NVRTC", *prefix = "nvrtc";
  LAMINA_NVRTC_FUNCTIONS(LAMINA_MEMBER)
};
#undef LAMINA_MEMBER

// File names of a library of the toolkit, in search order.
std::vector<std::string> names_of_library(const std::string& stem, const std::vector<std::string>& versions);

// The process's libraries, opened once. Null if there is none or a function is missing; `why` then says what was tried.
const DriverApi* driver_api(std::string& why);
const NvrtcApi* nvrtc_api(std::string& why);

}  // namespace lamina::gpu::cuda
