// Constant weights as products want them, packed once for each compiled partition, by its first execution.
#pragma once

#include <cstddef>
#include <memory>

#include "backends/backend.h"
#include "backends/cpu/host_block.h"
#include "handles/locks.h"

namespace lamina::cpu {

// Thread-safe.
class PackedConstants final : public CachedConstants {
 public:
  explicit PackedConstants(size_t count) : entries_(std::make_unique<Entry[]>(count)) {}

  // The memory of an entry. Who asks first fills it, `fill(memory)`; others wait for that.
  template <typename Fill>
  void* get(size_t index, size_t bytes, const Fill& fill) {
    Entry& entry = entries_[index];
    entry.filled.call([&] {
      auto memory = std::make_unique<HostBlock>(bytes, 64, nullptr);
      fill(memory->memory());
      entry.memory = std::move(memory);
    });
    return entry.memory->memory();
  }

 private:
  struct Entry {
    Once filled{LockRow::packed_constants};
    std::unique_ptr<HostBlock> memory;
  };
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace lamina::cpu
