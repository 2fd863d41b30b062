// What this room asks of CUDA and of OpenCL: memory, programs, launches. One object a device and context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "backends/gpu/emit_c.h"

namespace lamina::kernel {
struct MatmulStack;
}

namespace lamina::gpu {

class StepRunner;

// A buffer (CUDA: a device pointer, OpenCL: a cl_mem) and a byte offset into it.
struct BufferView {
  void* memory = nullptr;
  int64_t offset = 0;
};
inline constexpr size_t kMostValueBytes = 8;

// A compiled program. Thread-safe.
class Module {
 public:
  virtual ~Module() = default;
  // `function`: its place among the source's symbols. Parameters: buffer and offset of each view, then the words.
  virtual void launch(void* stream, size_t function, int64_t groups, int group_size, std::span<const BufferView> buffers,
                      std::span<const int64_t> words) const = 0;
};

// A place in a stream, behind all that the stream had been given when it was recorded. Complete before it is first recorded.
// Throws as Device does.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(void* stream) = 0;
  virtual bool is_complete() const = 0;
  virtual void wait() const = 0;
  virtual void hold_back(void* stream) const = 0;  // what the stream is given from now on waits, the host does not
};

struct LoadedModule {
  std::shared_ptr<const Module> module;
  bool from_cache = false;
};

// Thread-safe. `stream` null: the device's own. Every call throws Error(runtime_error), or Error(out_of_memory), with the name
// of the driver's function and its answer.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view api() const = 0;  // "cuda", "opencl"
  virtual std::string name() const = 0;
  virtual Language language() const = 0;
  virtual DeviceLimits limits() const = 0;
  virtual bool needs_alignment() const = 0;  // wide accesses need aligned addresses, so addresses matter
  virtual LoadedModule load(const KernelSource& source) = 0;
  // The same memory in the buffer of which a handle is a part (an OpenCL sub-buffer); itself where it is no part.
  virtual BufferView in_whole_buffer(BufferView view) const { return view; }

  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  // Copies block until the host's memory may be used again.
  virtual void copy_in(void* stream, void* memory, int64_t offset, const void* host, size_t bytes) = 0;
  // Writes a value of 1, 2, 4 or 8 bytes when the stream comes to it. Reads the value at once and does not block; a CUDA graph
  // that is being captured keeps it.
  virtual void put(void* stream, void* memory, int64_t offset, const void* value, size_t bytes) = 0;
  virtual void copy_out(void* stream, void* host, void* memory, int64_t offset, size_t bytes) = 0;
  virtual void copy(void* stream, void* to, void* from, size_t bytes) = 0;  // inside the device; does not block
  virtual void wait(void* stream) = 0;
  // The product by a library of the device's maker, with `generated` for calls that the library does not take; `generated`
  // where no library was asked for.
  virtual std::unique_ptr<StepRunner> by_library(const kernel::MatmulStack& stack, std::unique_ptr<StepRunner> generated);
  virtual std::unique_ptr<Event> make_event() = 0;  // which ends before the device
  // What `work` puts into the device's own stream takes, in milliseconds: between two events where the device has them, else on
  // the host's clock.
  virtual double time(const std::function<void()>& work) = 0;
};

}  // namespace lamina::gpu
