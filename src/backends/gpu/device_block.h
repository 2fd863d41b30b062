// Scratch memory of a device (backends/scratch_pool.h). An execution ends long before the device has finished its work, so a
// block has an event after its last use. The next stream that uses the block waits for the event on the device, and the host
// waits for it before the memory is freed. Streams are identified by their handles. A handle may meanwhile belong to a new
// stream, which also waits.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/gpu/device.h"

namespace lamina::gpu {

class DeviceBlock {
 public:
  // Allocates by the caller's allocator of device memory, or from the device. Throws Error(out_of_memory).
  DeviceBlock(std::shared_ptr<Device> device, size_t bytes, size_t alignment, const Allocator* allocator);
  ~DeviceBlock();  // blocks until the device has finished with the memory
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  void* memory() const { return memory_; }
  // True for the same stream, or if the device has finished with the block: two streams must not wait for each other.
  bool suits(const ExecutionContext& context) const { return context.stream == stream_ || last_use_->is_complete(); }
  void acquire(const ExecutionContext& context);
  void release(const ExecutionContext& context);

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<Event> last_use_;
  std::function<void(void*)> deallocate_;  // empty: memory of the device
  void* memory_;
  void* stream_ = nullptr;  // the current or last user
  bool lent_ = false;
};

}  // namespace lamina::gpu
