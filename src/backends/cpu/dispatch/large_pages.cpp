#include "backends/cpu/dispatch/large_pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>

#include "backends/cpu/program/tuning.h"

namespace lamina::cpu {

namespace {

constexpr auto kLine = static_cast<size_t>(tuning::kLine);
// A chunk is at least this part of all blocks before it: a large model needs few chunks, and wastes little.
constexpr size_t kShareOfBlocks = 8;

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::shared_ptr<char> aligned_memory(size_t bytes, size_t alignment) {
  const std::align_val_t aligned{alignment};
  return {static_cast<char*>(::operator new(bytes, aligned)), [aligned](char* memory) { ::operator delete(memory, aligned); }};
}

// Asks the system for large pages where `memory` has whole ones. For memory that was written before, it makes them in the
// background; else the first write of each waits for one, which takes up to milliseconds where memory is fragmented.
void prefer_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = rounded(at, kLargePage), end = (at + bytes) / kLargePage * kLargePage;
  // A system without large pages refuses, and the memory stays as it is.
  if (first < end) static_cast<void>(madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE));
#endif
}

}  // namespace

std::shared_ptr<void> LargePages::allocate(size_t bytes) {
  bytes = rounded(std::max<size_t>(bytes, 1), kLine);
  const std::lock_guard lock(mutex_);
  if (total_ + bytes < kLargePage) {
    std::shared_ptr<void> block = aligned_memory(bytes, kLine);
    total_ += bytes;
    return block;
  }
  if (chunk_ == nullptr || used_ + bytes > chunk_bytes_) {
    if (chunk_ != nullptr) prefer_large_pages(chunk_.get(), chunk_bytes_);
    const size_t chunk_bytes = rounded(std::max(bytes, total_ / kShareOfBlocks), kLargePage);
    chunk_ = aligned_memory(chunk_bytes, kLargePage);
    chunk_bytes_ = chunk_bytes;
    used_ = 0;
  }
  std::shared_ptr<void> block(chunk_, chunk_.get() + used_);
  used_ += bytes;
  total_ += bytes;
  return block;
}

}  // namespace lamina::cpu
