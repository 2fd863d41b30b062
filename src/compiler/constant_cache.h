// The cache of data derived from constant inputs: whether compiled partitions keep it, and its total limit. Process-wide.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>

#include "backends/backend.h"

namespace lamina::compiler {

// Apply to partitions that are compiled from now on. Initially the cache is on and has no limit.
void set_constant_cache(bool enabled);
bool has_constant_cache();
inline constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
void set_constant_cache_capacity(size_t bytes);
size_t constant_cache_capacity();

// The cached data of one compiled partition. Its bytes count from compilation on, although the first execution fills them.
class ConstantsOfPartition {
 public:
  explicit ConstantsOfPartition(const Executable& executable);
  ~ConstantsOfPartition();
  ConstantsOfPartition(const ConstantsOfPartition&) = delete;
  ConstantsOfPartition& operator=(const ConstantsOfPartition&) = delete;

  CachedConstants* get() const { return cached_.get(); }  // null: nothing is kept
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
  std::unique_ptr<CachedConstants> cached_;
};

}  // namespace lamina::compiler
