// Scratch memory of a device (backends/scratch_pool.h). An execution ends long before the device is done with it, so a block
// carries the event behind its last use: the stream that has it next waits for it, on the device, and so does the host before
// the memory goes back to where it came from. Streams are known by their handles alone; a handle may be that of a new stream by
// now, which waits like any other.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/gpu/device.h"

namespace lamina::gpu {

class DeviceBlock {
 public:
  // From the caller's allocator of device memory, or from the device. Throws Error(out_of_memory).
  DeviceBlock(std::shared_ptr<Device> device, size_t bytes, size_t alignment, const Allocator* allocator);
  ~DeviceBlock();  // blocks until the device is done with the memory
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  void* memory() const { return memory_; }
  // For the same stream, or when the device is done with it: two streams do not wait for each other.
  bool suits(const ExecutionContext& context) const { return context.stream == stream_ || last_use_->is_complete(); }
  void lend(const ExecutionContext& context);
  void give_back(const ExecutionContext& context);

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<Event> last_use_;
  std::function<void(void*)> deallocate_;  // empty: the device's own memory
  void* memory_;
  void* stream_ = nullptr;  // that has it, or had it last
  bool lent_ = false;
};

}  // namespace lamina::gpu
