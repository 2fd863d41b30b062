// The capability contract between lamina and what runs its partitions; the only file that names devices.
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
#include "passes/capabilities.h"

namespace lamina {

struct Subgraph;
struct ThreadPool;
namespace kernel {
struct Plan;
struct PlanTarget;
}  // namespace kernel

// Callbacks of the user's allocator; null functions mean aligned new and delete, or the device's own.
struct Allocator {
  void* (*allocate)(size_t size, size_t alignment) = nullptr;
  void (*deallocate)(void* memory) = nullptr;
  // Device memory: a device pointer or a cl_mem.
  std::function<void*(size_t size, size_t alignment)> device_allocate = nullptr;
  std::function<void(void* memory)> device_deallocate = nullptr;
};

// What an executable makes once of the constant inputs of a compiled partition, and keeps as long as that lives.
class KeptConstants {
 public:
  virtual ~KeptConstants() = default;
};

struct ExecutionContext {
  const Allocator* allocator = nullptr;
  void* stream = nullptr;     // device stream or queue; null on the CPU
  void* workspace = nullptr;  // ExecutableInfo::workspace_bytes, 64-byte aligned; null: the executable takes memory of its own
  int threads = 0;            // of OpenMP; 0: its default
  const ThreadPool* pool = nullptr;    // the caller's threads, in place of OpenMP's
  KeptConstants* constants = nullptr;  // of Executable::keep_constants; null: nothing is kept from one execution to the next
};

// What an executable says about itself; printed by the driver's --report, LAMINA_VERBOSE and explain.
struct ExecutableInfo {
  std::string backend;                                       // "cpu", "reference", "cuda", "opencl"
  std::vector<std::string> kernels;                          // symbol names, in order
  std::vector<size_t> step_of_kernel;                        // which step each belongs to; empty: every step has one
  std::vector<std::string> kernel_texts;                     // what each step computes, readable: a kernel's IR
  std::vector<std::string> schedules;                        // how each step runs, where there are several ways; else ""
  std::vector<std::pair<std::string, std::string>> sources;  // file name and text of each generated program
  int64_t required_bytes = 0;                                // bytes of the partition's inputs and outputs, each once
  int64_t moved_bytes = 0;                                   // bytes that the kernels read and write in main memory
  size_t workspace_bytes = 0;                                // memory between and inside steps
  size_t arena_bytes = 0;                                    // of these, what values between steps take, reused by lifetime
  double compile_ms = 0;
  bool from_cache = false;  // every kernel was found in the code cache
};

// Immutable; execute may be called from many threads at once.
class Executable {
 public:
  virtual ~Executable() = default;
  // Data pointers in the partition's port order; null is legal for a tensor without elements.
  virtual void execute(const ExecutionContext& context, std::span<const void* const> inputs,
                       std::span<void* const> outputs) const = 0;
  virtual const ExecutableInfo& info() const = 0;
  // For one compiled partition, whose constant inputs hold the same values at every execution; null: there is nothing to keep.
  virtual std::unique_ptr<KeptConstants> keep_constants() const { return nullptr; }
  virtual size_t constant_bytes() const { return 0; }  // that it takes, once filled
  // Gives memory that no execution uses at this moment back to where it came from.
  virtual void release_idle_memory() const {}
  // {input index, output index} that may be given the same memory.
  virtual std::vector<std::pair<size_t, size_t>> inplace_ports() const { return {}; }
  // Whether this very pair may; inplace_ports() names no input and no output twice.
  virtual bool may_share(size_t input, size_t output) const {
    const auto pairs = inplace_ports();
    return std::find(pairs.begin(), pairs.end(), std::pair(input, output)) != pairs.end();
  }
};

// Memory of a backend whose executables take no host pointers. Handles are device pointers (CUDA) or cl_mem (OpenCL); copies
// block.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void* allocate(size_t bytes) const = 0;
  virtual void release(void* memory) const = 0;
  virtual void copy_in(void* memory, const void* host, size_t bytes) const = 0;
  virtual void copy_out(void* host, void* memory, size_t bytes) const = 0;
  virtual void wait(void* stream) const = 0;  // until all that the stream was given is done; null: the backend's own stream
};

// A wish to know by measuring how kernels run best.
struct TuningRequest {
  static constexpr double kDefaultMilliseconds = 200;
  double milliseconds = kDefaultMilliseconds;  // of each kernel, compiling included
  bool again = false;                          // also where something has been found before
  // Of `count` kernels that are tuned together number `kernel` is at work, `done` (0 to 1) of its time is spent. May be null.
  std::function<void(size_t kernel, size_t count, double done)> progress = nullptr;
};

// A backend runs plans (it has a plan_target), or graphs as they are, op after op (the reference).
class Backend : public Capabilities {
 public:
  virtual std::string_view name() const = 0;
  // What the planner needs to know; null: the backend runs graphs.
  virtual const kernel::PlanTarget* plan_target() const { return nullptr; }
  // Of a plan made for plan_target(). Throws Error.
  virtual std::unique_ptr<Executable> compile(std::shared_ptr<const kernel::Plan>) const {
    throw Error(Status::runtime_error, join("bug in lamina: the ", name(), " backend runs graphs, it was given a plan"));
  }
  // Times the kernels of a plan made for plan_target() under several schedules, on memory of its own; what is found is what
  // compile takes from then on, in this process and where there is a cache on disk in others. Never changes a bit of a result.
  // How many kernels were timed: none where a backend has one way for each. Throws Error.
  virtual size_t tune(const kernel::Plan&, const TuningRequest&) const { return 0; }
  // Of a partition's ops with every shape, stride and dtype known. Throws Error.
  virtual std::unique_ptr<Executable> compile_graph(const Subgraph&) const {
    throw Error(Status::runtime_error, join("bug in lamina: the ", name(), " backend runs plans, it was given a graph"));
  }
  // Whether an executable may serve several compiled partitions, and outlive the engine that it was compiled for.
  virtual bool shares_executables() const { return false; }
  // How many threads its executables are made for, whatever OpenMP says; 0: as many as OpenMP has when they are compiled.
  virtual int threads() const { return 0; }
  virtual const DeviceMemory* device_memory() const { return nullptr; }  // null: executables take host pointers
  virtual std::string device_name() const { return ""; }
};

const Backend& reference_backend();
const Backend& cpu_backend();
// The CPU, for executions on as many threads as the pool has now (ExecutionContext::pool). Throws Error where it has none.
std::shared_ptr<const Backend> cpu_backend(const ThreadPool& pool);

// A GPU: "cuda", "opencl", either with a number behind a colon, or "" for the first there is, CUDA before OpenCL; or by its
// number among all, CUDA's first. Throws Error(unimplemented) that says what was looked for when there is none.
std::shared_ptr<const Backend> open_gpu_backend(const std::string& device);
std::shared_ptr<const Backend> open_gpu_backend(size_t index);
size_t gpu_device_count();
// On the caller's context: a CUdevice with a CUcontext, a cl_device_id with a cl_context.
std::shared_ptr<const Backend> open_cuda_backend(int device, void* context);
std::shared_ptr<const Backend> open_opencl_backend(void* device, void* context);
// What any of them can run: partitioning asks before a device is chosen.
const Capabilities& gpu_capabilities();

}  // namespace lamina
