#include "backends/gpu/device_block.h"

#include "interface/status.h"

namespace lamina::gpu {

DeviceBlock::DeviceBlock(std::shared_ptr<Device> device, size_t bytes, size_t alignment, const Allocator* allocator)
    : device_(std::move(device)), last_use_(device_->make_event()) {
  if (allocator == nullptr || !allocator->device_allocate) {
    memory_ = device_->allocate(bytes);
    return;
  }
  deallocate_ = allocator->device_deallocate;
  memory_ = allocator->device_allocate(bytes, alignment);
  if (memory_ == nullptr)
    throw Error(Status::out_of_memory, join("the allocator returned null for ", bytes, " bytes of device memory"));
}

// If waiting for a stream or an event fails, the device no longer executes work, so the memory can be freed.
DeviceBlock::~DeviceBlock() {
  try {
    if (lent_)
      device_->wait(stream_);
    else
      last_use_->wait();
  } catch (...) {
  }
  if (deallocate_)
    deallocate_(memory_);
  else
    device_->release(memory_);
}

void DeviceBlock::acquire(const ExecutionContext& context) {
  last_use_->hold_back(context.stream);
  stream_ = context.stream;
  lent_ = true;
}

void DeviceBlock::release(const ExecutionContext& context) {
  last_use_->record(context.stream);
  lent_ = false;
}

}  // namespace lamina::gpu
