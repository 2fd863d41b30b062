// Scratch memory of the CPU (backends/scratch_pool.h): from the caller's allocator, or from aligned new. Whoever gets it back
// may use it at once, an execution being done when it ends.
#pragma once

#include <cstddef>

#include "backends/backend.h"

namespace lamina::cpu {

class HostBlock {
 public:
  // Throws Error(out_of_memory) when the allocator gives none.
  HostBlock(size_t bytes, size_t alignment, const Allocator* allocator);
  ~HostBlock();
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;

  void* memory() const { return memory_; }
  bool suits(const ExecutionContext& context) const;  // by the allocator that would be asked
  void acquire(const ExecutionContext&) {}
  void release(const ExecutionContext&) {}

 private:
  size_t alignment_;
  void (*deallocate_)(void*);  // null: aligned delete
  void* memory_;
};

}  // namespace lamina::cpu
