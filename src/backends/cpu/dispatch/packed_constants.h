// Constant weights in the layout of products, packed once per compiled partition, by its first execution. If a partition may
// cache none, each execution packs them, in memory that executions reuse.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/dispatch/large_pages.h"
#include "handles/locks.h"

namespace lamina::cpu {

// Thread-safe.
class PackedConstants final : public CachedConstants {
 public:
  explicit PackedConstants(size_t count) : entries_(count) {
    for (auto& entry : entries_) entry = std::make_shared<Entry>();
  }

  // The entry is from now on the one of another object. Before it is filled.
  void share(size_t index, const PackedConstants& other, size_t index_there) { entries_[index] = other.entries_[index_there]; }

  // The entry is this memory, which is filled and outlives this object.
  void give(size_t index, void* memory) {
    entries_[index]->given = memory;
    entries_[index]->is_filled.store(true, std::memory_order_release);
  }

  // The memory of an entry. The first caller fills it by `fill(memory)`; others wait.
  template <typename Fill>
  void* get(size_t index, size_t bytes, const Fill& fill) {
    Entry& entry = *entries_[index];
    if (entry.given != nullptr) return entry.given;
    entry.filled.call([&] {
      if (entry.memory == nullptr) entry.memory = memory_.allocate(bytes);
      fill(entry.memory.get());
      entry.is_filled.store(true, std::memory_order_release);
    });
    return entry.memory.get();
  }
  // Whether `get` does not fill it anymore.
  bool has(size_t index) const { return entries_[index]->is_filled.load(std::memory_order_acquire); }

  // What is packed is out of date, its memory stays. No execution may use it meanwhile.
  void forget() {
    for (const auto& entry : entries_) {
      if (entry->given != nullptr) continue;
      entry->filled.undo();
      entry->is_filled.store(false, std::memory_order_relaxed);
    }
  }

 private:
  struct Entry {
    Once filled{LockRow::packed_constants};
    std::atomic<bool> is_filled = false;
    std::shared_ptr<void> memory;
    void* given = nullptr;
  };
  std::vector<std::shared_ptr<Entry>> entries_;
  LargePages memory_;
};

}  // namespace lamina::cpu
