// Memory in large pages, where the system has them. With pages of 4 KiB a core translates addresses more slowly than it could
// read the weights of a model, which are read once in an execution.
#pragma once

#include <cstddef>
#include <memory>

#include "handles/locks.h"

namespace lamina::cpu {

inline constexpr size_t kLargePage = size_t{2} << 20;

// Blocks of memory that are close to each other and so share large pages, as soon as they are one page together. The system is
// asked for these pages when the next ones are allocated, because the blocks have been written then. Thread-safe.
class LargePages {
 public:
  // 64-byte aligned. The block frees its memory, whether this object still exists or not.
  std::shared_ptr<void> allocate(size_t bytes);

 private:
  Mutex mutex_{LockRow::packed_memory};
  std::shared_ptr<char> chunk_;
  size_t chunk_bytes_ = 0, used_ = 0;  // of the chunk
  size_t total_ = 0;                   // of all blocks
};

}  // namespace lamina::cpu
