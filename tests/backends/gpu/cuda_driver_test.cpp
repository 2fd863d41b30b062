// A mock CUDA driver: its functions count created objects, track releases, and fail at a chosen call. For each failing call,
// the message names the function and the reason, and no object leaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "backends/gpu/cuda/compile.h"
#include "backends/gpu/cuda/device_runtime.h"
#include "backends/gpu/shared_object.h"
#include "backends/gpu/whole_run.h"
#include "support/code_cache_folder.h"

// This file replaces operator new for the whole program to count allocations. Without noinline, g++ warns about a mismatched
// pair.
namespace {
bool counting = false;
long allocations = 0;
}  // namespace
[[gnu::noinline]] void* operator new(size_t size) {
  if (counting) ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// A sanitizer's nothrow version does not call the replaced operator new.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (counting) ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace lamina::testing {
namespace {

using namespace gpu::cuda;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// The calls to the driver, and the objects that it still holds.
struct Driver {
  int calls = 0, failing_call = 0;  // call number failing_call fails with `failure`; 0: no call fails
  CUresult failure = 719;
  std::string failed;  // name of the failed function
  int contexts = 0, pushed = 0, modules = 0, memory = 0, streams = 0, events = 0, launches = 0, waits = 0;
  std::vector<std::pair<CUdeviceptr, unsigned>> words;  // words that were set
  int version = 12040, count = 1, major = 9;
};
Driver driver;

CUresult answer(const char* name) {
  if (++driver.calls != driver.failing_call) return 0;
  driver.failed = name;
  return driver.failure;
}

template <typename Effect>
CUresult answer(const char* name, const Effect& effect) {
  const CUresult result = answer(name);
  if (result == 0) effect();
  return result;
}

// Release functions never fail: objects must be released after any failure.
DriverApi mock() {
  DriverApi api;
  api.init = [](unsigned) { return answer("cuInit"); };
  api.driver_version = [](int* version) { return answer("cuDriverGetVersion", [&] { *version = driver.version; }); };
  api.error_name = [](CUresult result, const char** name) {
    *name = result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == kNoDevice  ? "CUDA_ERROR_NO_DEVICE"
                                   : "CUDA_ERROR_LAUNCH_FAILED";
    return 0;
  };
  api.device_count = [](int* count) { return answer("cuDeviceGetCount", [&] { *count = driver.count; }); };
  api.device_get = [](CUdevice* device, int) { return answer("cuDeviceGet", [&] { *device = 0; }); };
  api.device_name = [](char* name, int, CUdevice) { return answer("cuDeviceGetName", [&] { std::strcpy(name, "Mock"); }); };
  api.device_attribute = [](int* value, int what, CUdevice) {
    return answer("cuDeviceGetAttribute", [&] {
      *value = what == kMaxThreadsPerBlock ? 1024 : what == kComputeCapabilityMajor ? driver.major : 0;
    });
  };
  api.retain_primary_context = [](CUcontext* context, CUdevice) {
    return answer("cuDevicePrimaryCtxRetain",
                  [&] { *context = reinterpret_cast<CUcontext>(static_cast<intptr_t>(++driver.contexts)); });
  };
  api.release_primary_context = [](CUdevice) { return --driver.contexts, 0; };
  api.push_context = [](CUcontext) { return answer("cuCtxPushCurrent", [] { ++driver.pushed; }); };
  api.pop_context = [](CUcontext*) { return --driver.pushed, 0; };
  api.load_module = [](CUmodule* module, const void*) {
    return answer("cuModuleLoadData", [&] { *module = reinterpret_cast<CUmodule>(static_cast<intptr_t>(++driver.modules)); });
  };
  api.unload_module = [](CUmodule) { return --driver.modules, 0; };
  api.module_function = [](CUfunction* function, CUmodule, const char*) {
    return answer("cuModuleGetFunction", [&] { *function = reinterpret_cast<CUfunction>(intptr_t{1}); });
  };
  api.set_attribute = [](CUfunction, int, int) { return answer("cuFuncSetAttribute"); };
  api.launch_kernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                         void**) { return answer("cuLaunchKernel", [] { ++driver.launches; }); };
  api.allocate = [](CUdeviceptr* pointer, size_t) {
    return answer("cuMemAlloc", [&] { *pointer = 4096 * static_cast<CUdeviceptr>(++driver.memory); });
  };
  api.release = [](CUdeviceptr) { return --driver.memory, 0; };
  api.set_bytes = [](CUdeviceptr, unsigned char, size_t, CUstream) { return answer("cuMemsetD8Async"); };
  api.set_halves = [](CUdeviceptr, unsigned short, size_t, CUstream) { return answer("cuMemsetD16Async"); };
  api.set_words = [](CUdeviceptr to, unsigned value, size_t, CUstream) {
    return answer("cuMemsetD32Async", [&] { driver.words.emplace_back(to, value); });
  };
  api.copy_in = [](CUdeviceptr, const void*, size_t, CUstream) { return answer("cuMemcpyHtoDAsync"); };
  api.copy_out = [](void*, CUdeviceptr, size_t, CUstream) { return answer("cuMemcpyDtoHAsync"); };
  api.create_stream = [](CUstream* stream, unsigned) {
    return answer("cuStreamCreate", [&] { *stream = reinterpret_cast<CUstream>(static_cast<intptr_t>(++driver.streams)); });
  };
  api.destroy_stream = [](CUstream) { return --driver.streams, 0; };
  api.synchronize_stream = [](CUstream) { return answer("cuStreamSynchronize", [] { ++driver.waits; }); };
  api.hold_back_stream = [](CUstream, CUevent, unsigned) { return answer("cuStreamWaitEvent"); };
  api.create_event = [](CUevent* event, unsigned) {
    return answer("cuEventCreate", [&] { *event = reinterpret_cast<CUevent>(static_cast<intptr_t>(++driver.events)); });
  };
  api.destroy_event = [](CUevent) { return --driver.events, 0; };
  api.record_event = [](CUevent, CUstream) { return answer("cuEventRecord"); };
  api.query_event = [](CUevent) { return answer("cuEventQuery"); };
  api.synchronize_event = [](CUevent) { return answer("cuEventSynchronize"); };
  api.elapsed_time = [](float* milliseconds, CUevent, CUevent) {
    *milliseconds = 2.5F;
    return answer("cuEventElapsedTime");
  };
  return api;
}

// Returns the same image for every source.
NvrtcApi mock_compiler() {
  NvrtcApi api;
  api.version = [](int* major, int* minor) { return *major = 12, *minor = 4, 0; };
  api.error_string = [](nvrtcResult) { return "NVRTC_ERROR"; };
  api.supported_count = [](int* count) { return *count = 1, 0; };
  api.supported = [](int* known) { return *known = 90, 0; };
  api.create_program = [](nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*) { return 0; };
  api.destroy_program = [](nvrtcProgram*) { return 0; };
  api.compile_program = [](nvrtcProgram, int, const char* const*) { return 0; };
  api.cubin_size = api.ptx_size = api.log_size = [](nvrtcProgram, size_t* size) { return *size = 4, 0; };
  api.cubin = api.ptx = api.log = [](nvrtcProgram, char* text) { return std::memcpy(text, "code", 4), 0; };
  return api;
}

const DriverApi& driver_table() {
  static const DriverApi table = mock();
  return table;
}
const NvrtcApi& compiler_table() {
  static const NvrtcApi table = mock_compiler();
  return table;
}

void run_everything() { run_all_of(open_device(driver_table(), compiler_table(), 0)); }

void expect_nothing_left() {
  EXPECT_EQ(driver.contexts, 0);
  EXPECT_EQ(driver.pushed, 0);
  EXPECT_EQ(driver.modules, 0);
  EXPECT_EQ(driver.streams, 0);
  EXPECT_EQ(driver.events, 0);
}

class CudaDriver : public ::testing::Test {
 protected:
  void SetUp() override { driver = {}; }
};

TEST_F(CudaDriver, RunsAKernelAndItsColumnSums) {
  run_everything();
  EXPECT_EQ(driver.launches, 4);
  EXPECT_EQ(driver.memory, 0);
  expect_nothing_left();
}

TEST_F(CudaDriver, AnExecutionAllocatesNothingAfterTheFirst) {
  run_all_of(open_device(driver_table(), compiler_table(), 0), [](const std::function<void()>& execute) {
    allocations = 0;
    counting = true;
    execute();
    counting = false;
  });
  EXPECT_EQ(driver.launches, 6);
  EXPECT_EQ(allocations, 0);
}

TEST_F(CudaDriver, EveryCallThatFailsIsNamedAndLeavesNothingBehind) {
  run_everything();
  const int calls = driver.calls;
  ASSERT_GT(calls, 20);
  for (int failing = 1; failing <= calls; ++failing) {
    driver = {};
    driver.failing_call = failing;
    SCOPED_TRACE(join("call ", failing, " of ", calls));
    try {
      run_everything();
      // Only failures while releasing memory may be ignored.
      EXPECT_THAT(driver.failed, AnyOf("cuCtxPushCurrent", "cuEventSynchronize"));
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::runtime_error);
      EXPECT_THAT(error.what(), HasSubstr(driver.failed));
      EXPECT_THAT(error.what(), HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
    }
    EXPECT_EQ(driver.contexts, 0) << driver.failed;
    EXPECT_EQ(driver.pushed, 0) << driver.failed;
    if (driver.failed != "cuCtxPushCurrent") {
      EXPECT_EQ(driver.modules, 0) << driver.failed;
      EXPECT_EQ(driver.streams, 0) << driver.failed;
      EXPECT_EQ(driver.events, 0) << driver.failed;
      EXPECT_EQ(driver.memory, 0) << driver.failed;
    }
  }
}

// Waiting for a stream is not allowed while it is captured into a CUDA graph.
TEST_F(CudaDriver, AHostScalarIsPutIntoTheStreamWithoutWaiting) {
  GraphBuilder g;
  const auto x = g.input(DataType::f32, {8, 16}), scale = g.input(DataType::f32, {});
  g.tensor(scale).property = PropertyType::host_scalar;
  g.op(OpKind::Multiply, {x, scale});
  {
    const auto backend = gpu::make_backend(open_device(driver_table(), compiler_table(), 0));
    const auto executable = compile_first_partition(g.finish(), *backend);
    const float value = 1.5F;
    const void* const inputs[] = {reinterpret_cast<void*>(intptr_t{1 << 20}), &value};
    void* const outputs[] = {reinterpret_cast<void*>(intptr_t{1 << 21})};
    driver.waits = 0;
    executable->execute({}, inputs, outputs);
    EXPECT_EQ(driver.waits, 0);
    ASSERT_EQ(driver.words.size(), 1U);
    EXPECT_EQ(driver.words[0].second, std::bit_cast<unsigned>(value));
  }
  expect_nothing_left();
}

TEST_F(CudaDriver, PutsValuesOfEverySize) {
  const auto device = open_device(driver_table(), compiler_table(), 0);
  const double value = 1.1;
  void* const memory = reinterpret_cast<void*>(intptr_t{4096});
  device->put(nullptr, memory, 16, &value, 8);
  const auto bits = std::bit_cast<uint64_t>(value);
  EXPECT_THAT(driver.words, ::testing::ElementsAre(std::pair(CUdeviceptr{4112}, static_cast<unsigned>(bits)),
                                                   std::pair(CUdeviceptr{4116}, static_cast<unsigned>(bits >> 32))));
  driver.calls = 0;
  for (const auto& [bytes, name] : {std::pair(1, "cuMemsetD8Async"), std::pair(2, "cuMemsetD16Async")}) {
    driver.failing_call = driver.calls + 2;  // the first makes the context current
    EXPECT_THROW(device->put(nullptr, memory, 0, &value, static_cast<size_t>(bytes)), Error);
    EXPECT_EQ(driver.failed, name);
  }
}

TEST_F(CudaDriver, AnEventIsCompleteWhenTheDriverSaysSo) {
  DriverApi table = mock();
  const auto event = [&] { return open_device(table, compiler_table(), 0)->make_event(); };
  EXPECT_TRUE(event()->is_complete());
  table.query_event = [](CUevent) { return CUresult{kNotReady}; };
  EXPECT_FALSE(event()->is_complete());
  table.query_event = [](CUevent) { return CUresult{719}; };
  EXPECT_THROW(event()->is_complete(), Error);
  expect_nothing_left();
}

TEST_F(CudaDriver, TimesWorkBetweenTwoEvents) {
  const auto device = open_device(driver_table(), compiler_table(), 0);
  driver.calls = 0;
  EXPECT_EQ(device->time([](void*) {}), 2.5);
  const int calls = driver.calls;
  for (int failing = 1; failing <= calls; ++failing) {
    driver.calls = 0;
    driver.failing_call = failing;
    try {
      device->time([](void*) {});
      ADD_FAILURE() << "call " << failing << " of " << calls;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(driver.failed));
    }
    EXPECT_EQ(driver.events, 0) << driver.failed;
  }
}

TEST_F(CudaDriver, OutOfMemoryIsAStatusOfItsOwn) {
  DriverApi table = mock();
  table.allocate = [](CUdeviceptr*, size_t) { return CUresult{kOutOfMemory}; };
  const auto device = open_device(table, compiler_table(), 0);
  try {
    device->allocate(1 << 20);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::out_of_memory);
    EXPECT_STREQ(error.what(), "CUDA: cuMemAlloc of 1048576 bytes failed with CUDA_ERROR_OUT_OF_MEMORY");
  }
}

TEST_F(CudaDriver, AnOldDriverNoDeviceAndAFailedStartAreTold) {
  driver.version = 10020;
  EXPECT_EQ(find_devices(driver_table()).why_none, "the driver is for CUDA 10.2, 11.2 or newer is needed");
  driver = {};
  driver.count = 0;
  EXPECT_EQ(find_devices(driver_table()).why_none, "the driver reports no device");
  driver = {};
  driver.failing_call = 1;
  driver.failure = kNoDevice;
  EXPECT_EQ(find_devices(driver_table()).why_none, "cuInit failed with CUDA_ERROR_NO_DEVICE");
  driver = {};
  EXPECT_EQ(find_devices(driver_table()).count, 1U);
}

TEST_F(CudaDriver, ADeviceThatIsTooOldIsRefused) {
  driver.major = 7;
  try {
    open_device(driver_table(), compiler_table(), 0);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::unimplemented);
    EXPECT_THAT(error.what(), HasSubstr("Mock has compute capability 7.0; 8.0 or newer is needed"));
  }
  expect_nothing_left();
}

TEST_F(CudaDriver, AMissingSymbolIsNamed) {
  gpu::SharedObject library({"libc.so.6"});
  void (*nothing)() = nullptr;
  EXPECT_FALSE(library.find("cuNoSuchFunction", nothing));
  EXPECT_EQ(library.error(), "libc.so.6 has no function cuNoSuchFunction");
  gpu::SharedObject absent({"libno_such_driver.so.1", "libno_such_driver.so"});
  EXPECT_FALSE(absent.is_open());
  EXPECT_EQ(absent.error(), "not found: libno_such_driver.so.1, libno_such_driver.so");
}

// ---- images in the on-disk cache

class CudaCache : public CodeCacheFolder {
 protected:
  Image image() const { return compile(compiler_table(), "kernel", "text", 90, &cache_); }
  const CodeCache cache_{folder_};
};

TEST_F(CudaCache, ASecondCompileFindsTheImage) {
  EXPECT_FALSE(image().from_cache);
  EXPECT_TRUE(image().from_cache);
  EXPECT_EQ(image().data, "code");
  EXPECT_FALSE(compile(compiler_table(), "kernel", "another text", 90, &cache_).from_cache);
  EXPECT_FALSE(compile(compiler_table(), "kernel", "text", 91, &cache_).from_cache);
  EXPECT_FALSE(compile(compiler_table(), "kernel", "text", 90).from_cache);
}

TEST_F(CudaCache, ADamagedImageIsCompiledAnew) {
  image();
  const std::string whole = read_file(only_file());
  for (const std::string& damaged : {whole.substr(0, whole.size() - 1), whole + "x", std::string("rubbish")}) {
    write_file(only_file(), damaged);
    EXPECT_FALSE(image().from_cache);
    EXPECT_TRUE(image().from_cache);
  }
}

TEST_F(CudaCache, AnImageThatOthersMayWriteIsCompiledAnew) {
  image();
  fs::permissions(only_file(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(image().from_cache);
  EXPECT_TRUE(image().from_cache);
}

// Runs on machines with a GPU; elsewhere it is skipped, with the reason.
TEST(CudaDevice, RunsOnHardware) {
  const FoundDevices found = find_devices();
  if (found.count == 0) GTEST_SKIP() << "no CUDA device: " << found.why_none;
  const auto device = open_device(0);
  EXPECT_EQ(device->api(), "cuda");
}

}  // namespace
}  // namespace lamina::testing
