// The contract between lamina and the backends that run its partitions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "interface/graph.h"
#include "interface/status.h"
#include "passes/core/capabilities.h"

namespace lamina {

struct Subgraph;
struct ThreadPool;
namespace kernel {
struct Plan;
struct PlanTarget;
}  // namespace kernel

// Callbacks of the user's allocator. Null functions mean aligned new and delete, or the device's own allocation.
struct Allocator {
  void* (*allocate)(size_t size, size_t alignment) = nullptr;
  void (*deallocate)(void* memory) = nullptr;
  // Device memory: a device pointer or a cl_mem.
  std::function<void*(size_t size, size_t alignment)> device_allocate = nullptr;
  std::function<void(void* memory)> device_deallocate = nullptr;
};

// Data that an executable computes once from the constant inputs of a compiled partition. It lives as long as that partition.
class CachedConstants {
 public:
  virtual ~CachedConstants() = default;
};

// A step of an executable, and the work that its mathematics asks for (kernels/step_work.h).
struct StepWork {
  enum class Kind { kernel, library, tiled } kind = Kind::kernel;
  std::string name;
  int64_t bytes = 0;      // that it must move
  double arithmetic = 0;  // operations on numbers
  bool operator==(const StepWork&) const = default;
};

// When a step ran, in nanoseconds of std::chrono::steady_clock.
struct StepTime {
  size_t step = 0;
  int64_t begin = 0, end = 0;
};

// What a number of threads of a machine reaches at most, measured.
struct MachineLimits {
  int threads = 1;
  double read_bytes_per_second = 0;  // from main memory
  double operations_per_second = 0;  // of f32, in fused multiply-adds
};

struct ExecutionContext {
  const Allocator* allocator = nullptr;
  void* stream = nullptr;                // device stream or queue; null on the CPU
  void* workspace = nullptr;             // ExecutableInfo::workspace_bytes, 64-byte aligned; null: the executable allocates
  int threads = 0;                       // number of OpenMP threads; 0: OpenMP's default
  const ThreadPool* pool = nullptr;      // the caller's threads, used instead of OpenMP's
  CachedConstants* constants = nullptr;  // from Executable::cache_constants; null: executions share no data
  // The executable appends the times of its steps, if info().steps lists them. Null: nothing is measured.
  std::vector<StepTime>* step_times = nullptr;
};

// Describes an executable. The driver's --report, LAMINA_VERBOSE and explain print it.
struct ExecutableInfo {
  std::string backend;                                       // "cpu", "reference", "cuda", "opencl"
  std::vector<std::string> kernels;                          // symbol names, in order
  std::vector<size_t> step_of_kernel;                        // the step of each kernel; empty: every step has one kernel
  std::vector<std::string> kernel_texts;                     // readable text of what each step computes: a kernel's IR
  std::vector<std::string> schedules;                        // how each step runs, if there are several ways; else ""
  std::vector<std::pair<std::string, std::string>> sources;  // file name and text of each generated program
  std::vector<StepWork> steps;                               // empty: the backend does not measure its steps
  int64_t required_bytes = 0;                                // bytes of the partition's inputs and outputs, each counted once
  int64_t moved_bytes = 0;                                   // bytes that the kernels read and write in main memory
  size_t workspace_bytes = 0;                                // memory between and inside steps
  size_t arena_bytes = 0;                                    // the part of these for values between steps, reused by lifetime
  double compile_ms = 0;
  bool from_cache = false;  // every kernel was in the code cache
};

// Immutable. Many threads may call execute at the same time.
class Executable {
 public:
  virtual ~Executable() = default;
  // Data pointers are in the partition's port order. Null is valid for a tensor without elements.
  virtual void execute(const ExecutionContext& context, std::span<const void* const> inputs,
                       std::span<void* const> outputs) const = 0;
  virtual const ExecutableInfo& info() const = 0;
  // For one compiled partition, whose constant inputs have the same values in every execution. Null if nothing can be cached.
  virtual std::unique_ptr<CachedConstants> cache_constants() const { return nullptr; }
  virtual size_t constant_bytes() const { return 0; }  // size of the cached constants once they are computed
  // Several compiled partitions may share an executable and the memory that it keeps between executions. Memory of an allocator
  // is freed when the last partition with that allocator ends its use. Null: lamina's own memory. Each end_use follows a
  // begin_use.
  virtual void begin_use(const Allocator*) const {}
  virtual void end_use(const Allocator*) const {}
  // Pairs {input index, output index} that may use the same memory.
  virtual std::vector<std::pair<size_t, size_t>> inplace_ports() const { return {}; }
  // Whether this pair may share memory. inplace_ports() lists each input and each output at most once.
  virtual bool may_share(size_t input, size_t output) const {
    const auto pairs = inplace_ports();
    return std::find(pairs.begin(), pairs.end(), std::pair(input, output)) != pairs.end();
  }
};

// Memory of a backend whose executables do not accept host pointers. Handles are device pointers (CUDA) or cl_mem (OpenCL).
// Copies block.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void* allocate(size_t bytes) const = 0;
  virtual void release(void* memory) const = 0;
  virtual void copy_in(void* memory, const void* host, size_t bytes) const = 0;
  virtual void copy_out(void* host, void* memory, size_t bytes) const = 0;
  // until all work submitted to the stream is done; null: the backend's own stream
  virtual void wait(void* stream) const = 0;
};

// A request to measure which schedules are fastest.
struct TuningRequest {
  static constexpr double kDefaultMilliseconds = 200;
  double milliseconds = kDefaultMilliseconds;  // for each kernel, including compilation
  bool again = false;                          // also for kernels that were tuned before
  // Reports that kernel `kernel` of `count` is being tuned and has used the fraction `done` (0 to 1) of its time. May be
  // null.
  std::function<void(size_t kernel, size_t count, double done)> progress = nullptr;
};

// A backend runs plans (it has a plan_target), or it runs graphs op after op (the reference).
class Backend : public Capabilities {
 public:
  virtual std::string_view name() const = 0;
  // The planner's description of the backend; null: the backend runs graphs.
  virtual const kernel::PlanTarget* plan_target() const { return nullptr; }
  // Compiles a plan that was made for plan_target(). Throws Error.
  virtual std::unique_ptr<Executable> compile(std::shared_ptr<const kernel::Plan>) const {
    throw Error(Status::runtime_error, join("bug in lamina: the ", name(), " backend runs graphs, it was given a plan"));
  }
  // Times the kernels of a plan made for plan_target() under several schedules, with separate memory. compile uses the
  // fastest ones from then on, in this process and, if there is a cache on disk, in others. Results do not change. Returns
  // the number of kernels that were timed; 0 if a backend has only one schedule per kernel. Throws Error.
  virtual size_t tune(const kernel::Plan&, const TuningRequest&) const { return 0; }
  // Compiles a partition's ops, with every shape, stride and dtype known. Throws Error.
  virtual std::unique_ptr<Executable> compile_graph(const Subgraph&) const {
    throw Error(Status::runtime_error, join("bug in lamina: the ", name(), " backend runs plans, it was given a graph"));
  }
  // Measures them when they are first asked for, in some tenths of a second. Null if the backend does not measure its steps.
  // Throws Error(out_of_memory).
  virtual const MachineLimits* limits() const { return nullptr; }
  // Whether an executable may serve several compiled partitions and outlive the engine for which it was compiled.
  virtual bool shares_executables() const { return false; }
  // The number of threads for which executables are compiled, independent of OpenMP; 0: OpenMP's number at compilation.
  virtual int threads() const { return 0; }
  virtual const DeviceMemory* device_memory() const { return nullptr; }  // null: executables accept host pointers
  virtual std::string device_name() const { return ""; }
};

const Backend& reference_backend();
const Backend& cpu_backend();
// The CPU, for executions with the number of threads that the pool has now (ExecutionContext::pool). Throws Error if the pool
// has none.
std::shared_ptr<const Backend> cpu_backend(const ThreadPool& pool);

// Opens a GPU by name: "cuda", "opencl", either followed by a colon and a number, or "" for the first one, CUDA before
// OpenCL. The second form takes the number among all GPUs, CUDA's first. Throws Error(unimplemented), which says what was
// searched, if there is none.
std::shared_ptr<const Backend> open_gpu_backend(const std::string& device);
std::shared_ptr<const Backend> open_gpu_backend(size_t index);
size_t gpu_device_count();
// Uses the caller's context: a CUdevice with a CUcontext, or a cl_device_id with a cl_context.
std::shared_ptr<const Backend> open_cuda_backend(int device, void* context);
std::shared_ptr<const Backend> open_opencl_backend(void* device, void* context);
// The capabilities common to all GPUs. Partitioning uses them before a device is chosen.
const Capabilities& gpu_capabilities();

}  // namespace lamina
