// Each OpenCL call fails in turn: the message names the function and its status, and no object leaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "backends/gpu/opencl/device_runtime.h"
#include "backends/gpu/whole_run.h"
#include "interface/status.h"

namespace lamina::testing {
namespace {

using namespace gpu::opencl;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr cl_int kFailure = -59;  // CL_INVALID_OPERATION
constexpr cl_ulong kBytes = 1 << 16;

// The calls to the driver, and the number of objects that it still holds.
struct Driver {
  int calls = 0, failing_call = 0;  // call number failing_call fails; 0: no call fails
  std::string failed;               // name of the failed function
  int objects = 0, launches = 0;
  cl_int command_status = kComplete;
  cl_ulong clock = 0;  // nanoseconds at the end of the command that was asked last
  cl_ulong timed_queues = 0;
  std::map<cl_mem, std::pair<cl_mem, size_t>> parts;  // sub-buffers: their buffer and their first byte
  std::vector<bool> disjoint;                         // for each program: whether it assumes that buffers do not overlap
};
Driver driver;

cl_int answer(const char* name) {
  if (++driver.calls != driver.failing_call) return 0;
  driver.failed = name;
  return kFailure;
}

template <typename T>
T* made(const char* name, cl_int* status) {
  *status = answer(name);
  return *status != 0 ? nullptr : reinterpret_cast<T*>(static_cast<intptr_t>(4096 * ++driver.objects));
}

template <typename T>
cl_int released(T*) {
  --driver.objects;
  return 0;
}

cl_int describe_device(cl_device_id, cl_uint what, size_t size, void* value, size_t*) {
  const cl_int result = answer("clGetDeviceInfo");
  if (result != 0) return result;
  if (what == kDeviceName)
    std::strcpy(static_cast<char*>(value), "Mock");
  else
    std::memcpy(value, &kBytes, std::min(size, sizeof kBytes));
  return 0;
}

// Release functions never fail.
Api mock() {
  Api api;
  api.GetPlatformIDs = [](cl_uint, cl_platform_id*, cl_uint* count) { return *count = 0, answer("clGetPlatformIDs"); };
  api.GetDeviceInfo = describe_device;
  api.CreateContext = [](const intptr_t*, cl_uint, const cl_device_id*, void*, void*, cl_int* status) {
    return made<_cl_context>("clCreateContext", status);
  };
  api.RetainContext = [](cl_context) { return ++driver.objects, 0; };
  api.ReleaseContext = released<_cl_context>;
  api.CreateCommandQueue = [](cl_context, cl_device_id, cl_ulong properties, cl_int* status) {
    driver.timed_queues += properties == kQueueProfilingEnable ? 1 : 0;
    return made<_cl_command_queue>("clCreateCommandQueue", status);
  };
  api.ReleaseCommandQueue = released<_cl_command_queue>;
  api.CreateBuffer = [](cl_context, cl_ulong, size_t, void*, cl_int* status) {
    return made<_cl_mem>("clCreateBuffer", status);
  };
  api.GetMemObjectInfo = [](cl_mem memory, cl_uint what, size_t size, void* value, size_t*) {
    const cl_int result = answer("clGetMemObjectInfo");
    if (result != 0) return result;
    std::memset(value, 0, size);
    if (const auto part = driver.parts.find(memory); part != driver.parts.end()) {
      if (what == kMemOffset) std::memcpy(value, &part->second.second, size);
      if (what == kMemAssociatedMemObject) std::memcpy(value, &part->second.first, size);
    }
    return result;
  };
  api.EnqueueFillBuffer = [](cl_command_queue, cl_mem, const void*, size_t, size_t, size_t, cl_uint, const void*, void*) {
    return answer("clEnqueueFillBuffer");
  };
  api.ReleaseMemObject = released<_cl_mem>;
  api.CreateProgramWithSource = [](cl_context, cl_uint, const char** texts, const size_t*, cl_int* status) {
    driver.disjoint.push_back(std::string_view(*texts).find("#define LM_DISJOINT 1") != std::string_view::npos);
    return made<_cl_program>("clCreateProgramWithSource", status);
  };
  api.BuildProgram = [](cl_program, cl_uint, const cl_device_id*, const char*, void*, void*) {
    return answer("clBuildProgram");
  };
  api.GetProgramBuildInfo = [](cl_program, cl_device_id, cl_uint, size_t size, void* value, size_t* needed) {
    if (needed != nullptr)
      *needed = 6;
    else
      std::memcpy(value, "a log", std::min<size_t>(size, 6));
    return 0;
  };
  api.ReleaseProgram = released<_cl_program>;
  api.CreateKernel = [](cl_program, const char*, cl_int* status) { return made<_cl_kernel>("clCreateKernel", status); };
  api.ReleaseKernel = released<_cl_kernel>;
  api.SetKernelArg = [](cl_kernel, cl_uint, size_t, const void*) { return answer("clSetKernelArg"); };
  api.EnqueueNDRangeKernel = [](cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint,
                                const void*, void*) {
    const cl_int result = answer("clEnqueueNDRangeKernel");
    driver.launches += result == 0 ? 1 : 0;
    return result;
  };
  api.EnqueueReadBuffer = [](cl_command_queue, cl_mem, cl_uint, size_t, size_t, void*, cl_uint, const void*, void*) {
    return answer("clEnqueueReadBuffer");
  };
  api.EnqueueWriteBuffer = [](cl_command_queue, cl_mem, cl_uint, size_t, size_t, const void*, cl_uint, const void*, void*) {
    return answer("clEnqueueWriteBuffer");
  };
  api.Finish = [](cl_command_queue) { return answer("clFinish"); };
  api.EnqueueMarkerWithWaitList = [](cl_command_queue, cl_uint, const cl_event*, cl_event* event) {
    cl_int status = 0;
    *event = made<_cl_event>("clEnqueueMarkerWithWaitList", &status);
    return status;
  };
  api.EnqueueBarrierWithWaitList = [](cl_command_queue, cl_uint, const cl_event*, cl_event*) {
    return answer("clEnqueueBarrierWithWaitList");
  };
  api.GetEventInfo = [](cl_event, cl_uint, size_t, void* value, size_t*) {
    std::memcpy(value, &driver.command_status, sizeof driver.command_status);
    return answer("clGetEventInfo");
  };
  api.GetEventProfilingInfo = [](cl_event, cl_uint what, size_t, void* value, size_t*) {
    if (what != kProfilingCommandEnd) return kFailure;
    driver.clock += 1500;
    std::memcpy(value, &driver.clock, sizeof driver.clock);
    return answer("clGetEventProfilingInfo");
  };
  api.WaitForEvents = [](cl_uint, const cl_event*) { return answer("clWaitForEvents"); };
  api.ReleaseEvent = released<_cl_event>;
  return api;
}

const Api& table() {
  static const Api api = mock();
  return api;
}

void run_everything() { run_all_of(open_device(table(), nullptr)); }

class OpenclDriver : public ::testing::Test {
 protected:
  void SetUp() override { driver = {}; }
};

TEST_F(OpenclDriver, RunsAKernelAndItsColumnSums) {
  run_everything();
  EXPECT_EQ(driver.launches, 4);
  EXPECT_EQ(driver.objects, 0);
}

TEST_F(OpenclDriver, EveryCallThatFailsIsNamedAndLeavesNothingBehind) {
  run_everything();
  const int calls = driver.calls;
  ASSERT_GT(calls, 40);
  for (int failing = 1; failing <= calls; ++failing) {
    driver = {};
    driver.failing_call = failing;
    SCOPED_TRACE(join("call ", failing, " of ", calls));
    try {
      run_everything();
      EXPECT_EQ(driver.failed, "clWaitForEvents");  // only failures while releasing memory may be ignored
    } catch (const Error& error) {
      const bool memory = driver.failed == "clCreateBuffer";  // for any reason of the driver
      EXPECT_EQ(error.status(), memory ? Status::out_of_memory : Status::runtime_error);
      EXPECT_THAT(error.what(), HasSubstr(driver.failed));
      EXPECT_THAT(error.what(), HasSubstr("failed with -59"));
    }
    EXPECT_EQ(driver.objects, 0) << driver.failed;
  }
}

TEST_F(OpenclDriver, AnEventIsCompleteWhenItsCommandIsOrHasFailed) {
  {
    const auto device = open_device(table(), nullptr);
    const auto event = device->make_event();
    EXPECT_TRUE(event->is_complete());
    event->record(nullptr);
    for (const auto& [status, complete] : {std::pair(kComplete, true), std::pair(kFailure, true), std::pair(1, false)}) {
      driver.command_status = status;
      EXPECT_EQ(event->is_complete(), complete);
    }
  }
  EXPECT_EQ(driver.objects, 0);
}

TEST_F(OpenclDriver, TimesWorkBetweenTwoEventsOfAQueueThatKeepsTimes) {
  const auto time = [] {
    const auto device = open_device(table(), nullptr);
    driver.calls = 0;
    return device->time([](void* stream) { EXPECT_NE(stream, nullptr); });
  };
  EXPECT_DOUBLE_EQ(time(), 1500e-6);
  EXPECT_EQ(driver.timed_queues, 1U);
  EXPECT_EQ(driver.objects, 0);
  const int calls = driver.calls;
  for (int failing = 1; failing <= calls; ++failing) {
    const auto device = open_device(table(), nullptr);
    driver.calls = 0;
    driver.failing_call = failing;
    try {
      device->time([](void*) {});
      ADD_FAILURE() << "call " << failing << " of " << calls;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(driver.failed));
    }
    driver.failing_call = 0;
  }
  EXPECT_EQ(driver.objects, 0);
}

// Returns the programs of an execution whose src and dst are these parts of one buffer.
std::vector<bool> disjoint_programs_for(size_t src_origin, size_t dst_origin) {
  const auto handle = [](intptr_t number) { return reinterpret_cast<cl_mem>(number); };
  const auto backend = gpu::make_backend(open_device(table(), nullptr));
  const auto executable = compile_first_partition(unary_graph(OpKind::ReLU, DataType::f32, {8, 16}), *backend);
  driver.parts = {{handle(1 << 20), {handle(1 << 22), src_origin}}, {handle(1 << 21), {handle(1 << 22), dst_origin}}};
  const void* const inputs[] = {handle(1 << 20)};
  void* const outputs[] = {handle(1 << 21)};
  executable->execute({}, inputs, outputs);
  return driver.disjoint;
}

TEST_F(OpenclDriver, PartsOfOneBufferThatOverlapAreNotTakenForDisjoint) {
  EXPECT_THAT(disjoint_programs_for(0, 0), ElementsAre(true, false));  // in place, through two handles
  SetUp();
  EXPECT_THAT(disjoint_programs_for(128, 0), ElementsAre(true, false));
  SetUp();
  EXPECT_THAT(disjoint_programs_for(0, 512), ElementsAre(true));
}

TEST_F(OpenclDriver, TheCallersContextIsKeptAndGivenBack) {
  driver.objects = 1;
  run_all_of(open_device(table(), nullptr, reinterpret_cast<cl_context>(intptr_t{4096})));
  EXPECT_EQ(driver.objects, 1);
}

// Four devices: 1 and 3 are CPUs, 2 and 4 are GPUs.
TEST_F(OpenclDriver, GpusComeFirstAndADeviceThatDoesNotSayIsStillCounted) {
  Api api = mock();
  const auto device = [](intptr_t number) { return reinterpret_cast<cl_device_id>(number); };
  api.GetPlatformIDs = [](cl_uint, cl_platform_id* platforms, cl_uint* count) {
    *platforms = nullptr;
    return *count = 1, 0;
  };
  api.GetDeviceIDs = [](cl_platform_id, cl_ulong, cl_uint, cl_device_id* devices, cl_uint* count) {
    for (intptr_t number = 1; number <= 4; ++number) devices[number - 1] = reinterpret_cast<cl_device_id>(number);
    return *count = 4, 0;
  };
  api.GetDeviceInfo = [](cl_device_id id, cl_uint, size_t, void* value, size_t*) {
    const cl_ulong type = reinterpret_cast<intptr_t>(id) % 2 == 0 ? kDeviceTypeGpu : kDeviceTypeCpu;
    std::memcpy(value, &type, sizeof type);
    return answer("clGetDeviceInfo");
  };
  EXPECT_THAT(find_devices(api).devices, ElementsAre(device(2), device(4), device(1), device(3)));
  driver = {};
  driver.failing_call = 2;  // the query of device 2 fails
  EXPECT_THAT(find_devices(api).devices, ElementsAre(device(4), device(1), device(2), device(3)));
}

TEST_F(OpenclDriver, NoPlatformIsTold) { EXPECT_EQ(find_devices(table()).why_none, "no OpenCL platform reports a device"); }

}  // namespace
}  // namespace lamina::testing
