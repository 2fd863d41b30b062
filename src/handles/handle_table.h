// Handles that detect use after destruction.
//
// A handle points to a slot: a flag that says whether it is alive, and its content. Destroying a handle empties its slot
// and puts it at the end of a free list. New handles reuse a slot only when more than kMinEmpty slots are free, so a stale
// handle finds a dead slot in valid memory. The check costs one load.
//
// This header does not depend on the rest of lamina: front ends over the public interface use handles too.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include "locks.h"

namespace lamina {

template <typename Content>
struct HandleSlot {
  std::atomic<bool> alive{false};
  std::unique_ptr<Content> content;
  HandleSlot* next = nullptr;  // next free slot; an intrusive list, so destroying a handle allocates nothing
};

template <typename Handle>  // derives from HandleSlot<Content>
class HandleTable {
 public:
  template <typename Content>
  Handle* put(std::unique_ptr<Content> content) {
    Handle* const slot = take();
    slot->content = std::move(content);
    slot->alive.store(true, std::memory_order_release);
    return slot;
  }

  // Returns false if it was already destroyed.
  bool destroy(Handle* handle) {
    if (!handle->alive.exchange(false)) return false;
    handle->content.reset();
    const std::lock_guard lock(mutex_);
    if (empty_++ == 0)
      oldest_ = handle;
    else
      newest_->next = handle;
    newest_ = handle;
    return true;
  }

  static bool is_alive(const Handle* handle) { return handle->alive.load(std::memory_order_acquire); }

  // Never destroyed: destructors of other static objects may destroy handles.
  static HandleTable& instance() {
    static HandleTable* const table = new HandleTable;
    return *table;
  }

 private:
  static constexpr size_t kMinEmpty = 1024;

  Handle* take() {
    const std::lock_guard lock(mutex_);
    if (empty_ <= kMinEmpty) return &all_.emplace_back();
    Handle* const slot = oldest_;
    oldest_ = static_cast<Handle*>(slot->next);
    slot->next = nullptr;
    --empty_;
    return slot;
  }

  Mutex mutex_{LockRow::handles};
  std::deque<Handle> all_;
  Handle *oldest_ = nullptr, *newest_ = nullptr;  // the ends of the free list
  size_t empty_ = 0;
};

}  // namespace lamina
