// Scratch memory of the CPU (backends/scratch_pool.h), from the caller's allocator or from aligned new. It may be reused as
// soon as an execution ends.
#pragma once

#include <cstddef>

#include "backends/backend.h"

namespace lamina::cpu {

class HostBlock {
 public:
  // Throws Error(out_of_memory) if the allocator fails.
  HostBlock(size_t bytes, size_t alignment, const Allocator* allocator);
  ~HostBlock();
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;

  void* memory() const { return memory_; }
  bool suits(const ExecutionContext& context) const;  // whether it comes from the context's allocator
  void acquire(const ExecutionContext&) {}
  void release(const ExecutionContext&) {}

 private:
  size_t alignment_;
  void (*deallocate_)(void*);  // null: aligned delete
  void* memory_;
};

}  // namespace lamina::cpu
