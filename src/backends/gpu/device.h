// The interface of CUDA and OpenCL devices for this module: memory, programs, launches. There is one object per device and
// context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/gpu/emit/emit_kernel.h"

namespace lamina {
template <typename Compiled, typename Machine>
class PrimitiveLibrary;
}

namespace lamina::gpu {

class StepRunner;
using StepLibrary = PrimitiveLibrary<StepRunner, void>;

// A buffer (CUDA: a device pointer, OpenCL: a cl_mem) and a byte offset into it.
struct BufferView {
  void* memory = nullptr;
  int64_t offset = 0;
};
inline constexpr size_t kMaxValueBytes = 8;

// A compiled program. Thread-safe.
class Module {
 public:
  virtual ~Module() = default;
  // `function`: index among the source's symbols. Parameters: buffer and offset of each view, then the words.
  virtual void launch(void* stream, size_t function, int64_t groups, int group_size, std::span<const BufferView> buffers,
                      std::span<const int64_t> words) const = 0;
};

// Marks a position in a stream, after all work submitted before it was recorded. It is complete before it is first recorded.
// Throws as Device does.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(void* stream) = 0;
  virtual bool is_complete() const = 0;
  virtual void wait() const = 0;
  virtual void hold_back(void* stream) const = 0;  // later work of the stream waits, the host does not
};

struct LoadedModule {
  std::shared_ptr<const Module> module;
  bool from_cache = false;
};

// Thread-safe. A null `stream` means the device's own stream. Every call throws Error(runtime_error) or Error(out_of_memory)
// with the name of the driver's function and its result.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view api() const = 0;  // "cuda", "opencl"
  virtual std::string name() const = 0;
  virtual const Language& language() const = 0;
  virtual DeviceLimits limits() const = 0;
  virtual bool needs_alignment() const = 0;  // wide accesses need aligned addresses
  virtual LoadedModule load(const KernelSource& source) = 0;
  // Returns the same memory as part of the buffer that contains it (if the handle is an OpenCL sub-buffer), else `view`.
  virtual BufferView in_whole_buffer(BufferView view) const { return view; }

  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  // Copies block until the host memory may be reused.
  virtual void copy_in(void* stream, void* memory, int64_t offset, const void* host, size_t bytes) = 0;
  // Writes a value of 1, 2, 4 or 8 bytes in stream order. Reads the value at once and does not block. A CUDA graph that is
  // being captured stores the value.
  virtual void put(void* stream, void* memory, int64_t offset, const void* value, size_t bytes) = 0;
  virtual void copy_out(void* stream, void* host, void* memory, int64_t offset, size_t bytes) = 0;
  virtual void copy(void* stream, void* to, void* from, size_t bytes) = 0;  // inside the device; does not block
  virtual void wait(void* stream) = 0;
  // The vendor's libraries that were requested, in the order in which they are asked to compile a step. `generated` runs the
  // calls that they do not take.
  virtual std::vector<std::shared_ptr<const StepLibrary>> libraries(std::shared_ptr<const StepLibrary> /*generated*/) {
    return {};
  }
  virtual std::unique_ptr<Event> make_event() = 0;  // must be destroyed before the device
  // The milliseconds between two events on the device, before and after the work that `work` submits to the stream. Work that
  // was submitted earlier is complete.
  virtual double time(const std::function<void(void* stream)>& work) = 0;
};

}  // namespace lamina::gpu
