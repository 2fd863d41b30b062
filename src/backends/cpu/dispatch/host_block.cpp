#include "backends/cpu/dispatch/host_block.h"

#include <new>

#include "interface/status.h"

namespace lamina::cpu {

ScratchOwner owner_of(const Allocator* allocator) {
  return allocator != nullptr && allocator->allocate != nullptr ? allocator->deallocate : nullptr;
}

HostBlock::HostBlock(size_t bytes, size_t alignment, const Allocator* allocator)
    : alignment_(alignment), deallocate_(owner_of(allocator)) {
  memory_ = deallocate_ == nullptr ? ::operator new(bytes, std::align_val_t{alignment}) : allocator->allocate(bytes, alignment);
  if (memory_ == nullptr)
    throw Error(Status::out_of_memory, join("the allocator returned null for ", bytes, " bytes of scratch memory"));
}

HostBlock::~HostBlock() {
  if (deallocate_ != nullptr)
    deallocate_(memory_);
  else
    ::operator delete(memory_, std::align_val_t{alignment_});
}

bool HostBlock::suits(const ExecutionContext& context) const { return owner_of(context.allocator) == deallocate_; }

}  // namespace lamina::cpu
