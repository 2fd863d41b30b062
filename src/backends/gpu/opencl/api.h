// The part of the OpenCL 1.2 API that lamina calls. It is looked up in the ICD loader at run time, so that building needs
// neither headers nor a library. Names, values and semantics are Khronos's (CL/cl.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct _cl_platform_id;
struct _cl_device_id;
struct _cl_context;
struct _cl_command_queue;
struct _cl_mem;
struct _cl_program;
struct _cl_kernel;
struct _cl_event;

namespace lamina::gpu::opencl {

using cl_platform_id = ::_cl_platform_id*;
using cl_device_id = ::_cl_device_id*;
using cl_context = ::_cl_context*;
using cl_command_queue = ::_cl_command_queue*;
using cl_mem = ::_cl_mem*;
using cl_program = ::_cl_program*;
using cl_kernel = ::_cl_kernel*;
using cl_event = ::_cl_event*;
using cl_int = int32_t;
using cl_uint = uint32_t;
using cl_ulong = uint64_t;

inline constexpr cl_int kMemObjectAllocationFailure = -4, kOutOfResources = -5, kOutOfHostMemory = -6;
inline constexpr cl_ulong kDeviceTypeCpu = 1 << 1, kDeviceTypeGpu = 1 << 2, kDeviceTypeAll = 0xffffffff;
inline constexpr cl_uint kDeviceType = 0x1000, kDeviceMaxComputeUnits = 0x1002, kDeviceMaxWorkGroupSize = 0x1004,
                         kDeviceSingleFpConfig = 0x101b, kDeviceName = 0x102b, kDeviceDoubleFpConfig = 0x1032,
                         kDeviceLocalMemSize = 0x1023, kProgramBuildLog = 0x1183, kMemAssociatedMemObject = 0x1107,
                         kMemOffset = 0x1108, kEventCommandExecutionStatus = 0x11d3, kProfilingCommandEnd = 0x1283;
inline constexpr cl_ulong kFpCorrectlyRoundedDivideSqrt = 1 << 7, kFpDenorm = 1;
inline constexpr cl_ulong kMemReadWrite = 1, kQueueProfilingEnable = 2;
// a command's status; smaller values mean failure, larger ones that it has not finished
inline constexpr cl_int kComplete = 0;

// Every function that lamina calls, as name(result, parameters). The table and the loader are generated from this list.
#define LAMINA_OPENCL_FUNCTIONS(F)                                                                                             \
  F(cl_int, GetPlatformIDs, (cl_uint, cl_platform_id*, cl_uint*))                                                              \
  F(cl_int, GetDeviceIDs, (cl_platform_id, cl_ulong, cl_uint, cl_device_id*, cl_uint*))                                        \
  F(cl_int, GetDeviceInfo, (cl_device_id, cl_uint, size_t, void*, size_t*))                                                    \
  F(cl_context, CreateContext, (const intptr_t*, cl_uint, const cl_device_id*, void*, void*, cl_int*))                         \
  F(cl_int, RetainContext, (cl_context))                                                                                       \
  F(cl_int, ReleaseContext, (cl_context))                                                                                      \
  F(cl_command_queue, CreateCommandQueue, (cl_context, cl_device_id, cl_ulong, cl_int*))                                       \
  F(cl_int, ReleaseCommandQueue, (cl_command_queue))                                                                           \
  F(cl_mem, CreateBuffer, (cl_context, cl_ulong, size_t, void*, cl_int*))                                                      \
  F(cl_int, GetMemObjectInfo, (cl_mem, cl_uint, size_t, void*, size_t*))                                                       \
  F(cl_int, EnqueueFillBuffer, (cl_command_queue, cl_mem, const void*, size_t, size_t, size_t, cl_uint, const void*, void*))   \
  F(cl_int, ReleaseMemObject, (cl_mem))                                                                                        \
  F(cl_program, CreateProgramWithSource, (cl_context, cl_uint, const char**, const size_t*, cl_int*))                          \
  F(cl_int, BuildProgram, (cl_program, cl_uint, const cl_device_id*, const char*, void*, void*))                               \
  F(cl_int, GetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void*, size_t*))                                  \
  F(cl_int, ReleaseProgram, (cl_program))                                                                                      \
  F(cl_kernel, CreateKernel, (cl_program, const char*, cl_int*))                                                               \
  F(cl_int, ReleaseKernel, (cl_kernel))                                                                                        \
  F(cl_int, SetKernelArg, (cl_kernel, cl_uint, size_t, const void*))                                                           \
  F(cl_int, EnqueueNDRangeKernel,                                                                                              \
    (cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint, const void*, void*))          \
  F(cl_int, EnqueueReadBuffer, (cl_command_queue, cl_mem, cl_uint, size_t, size_t, void*, cl_uint, const void*, void*))        \
  F(cl_int, EnqueueWriteBuffer, (cl_command_queue, cl_mem, cl_uint, size_t, size_t, const void*, cl_uint, const void*, void*)) \
  F(cl_int, EnqueueCopyBuffer, (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const void*, void*))        \
  F(cl_int, Finish, (cl_command_queue))                                                                                        \
  F(cl_int, EnqueueMarkerWithWaitList, (cl_command_queue, cl_uint, const cl_event*, cl_event*))                                \
  F(cl_int, EnqueueBarrierWithWaitList, (cl_command_queue, cl_uint, const cl_event*, cl_event*))                               \
  F(cl_int, GetEventInfo, (cl_event, cl_uint, size_t, void*, size_t*))                                                         \
  F(cl_int, GetEventProfilingInfo, (cl_event, cl_uint, size_t, void*, size_t*))                                                \
  F(cl_int, WaitForEvents, (cl_uint, const cl_event*))                                                                         \
  F(cl_int, ReleaseEvent, (cl_event))

struct Api {
#define LAMINA_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  LAMINA_OPENCL_FUNCTIONS(LAMINA_MEMBER)
#undef LAMINA_MEMBER
};

// The process's ICD loader, opened once. Null if there is none; `why` then says what was tried.
const Api* api(std::string& why);

}  // namespace lamina::gpu::opencl
