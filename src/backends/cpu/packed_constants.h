// Constant weights in the layout of products, packed once per compiled partition, by its first execution.
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

  // The memory of an entry. The first caller fills it by `fill(memory)`; others wait.
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
