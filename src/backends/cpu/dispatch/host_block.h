// Scratch memory of the CPU (backends/scratch_pool.h), from the caller's allocator or from aligned new. It may be reused as
// soon as an execution ends.
#pragma once

#include <cstddef>

#include "backends/backend.h"
#include "backends/scratch_pool.h"

namespace lamina::cpu {

// Null if the caller has no allocator.
ScratchOwner owner_of(const Allocator* allocator);

class HostBlock {
 public:
  // Throws Error(out_of_memory) if the allocator fails.
  HostBlock(size_t bytes, size_t alignment, const Allocator* allocator);
  ~HostBlock();
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;

  void* memory() const { return memory_; }
  bool suits(const ExecutionContext& context) const;  // whether it comes from the context's allocator
  ScratchOwner owner() const { return deallocate_; }
  void acquire(const ExecutionContext&) {}
  void release(const ExecutionContext&) {}

 private:
  size_t alignment_;
  ScratchOwner deallocate_;  // null: aligned delete
  void* memory_;
};

}  // namespace lamina::cpu
