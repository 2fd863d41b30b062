// What compiled partitions keep of their constant inputs: whether they do, and how much all of them together. Process-wide.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>

#include "backends/backend.h"

namespace lamina::compiler {

// For partitions that are compiled from now on: on at first, without a limit.
void set_constant_cache(bool enabled);
bool has_constant_cache();
inline constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
void set_constant_cache_capacity(size_t bytes);
size_t constant_cache_capacity();

// What one compiled partition keeps; its bytes count from the beginning, though the first execution fills them.
class ConstantsOfPartition {
 public:
  explicit ConstantsOfPartition(const Executable& executable);
  ~ConstantsOfPartition();
  ConstantsOfPartition(const ConstantsOfPartition&) = delete;
  ConstantsOfPartition& operator=(const ConstantsOfPartition&) = delete;

  KeptConstants* get() const { return kept_.get(); }  // null: nothing is kept

 private:
  size_t bytes_ = 0;
  std::unique_ptr<KeptConstants> kept_;
};

}  // namespace lamina::compiler
