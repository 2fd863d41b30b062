// Handles that detect use after destruction.
//
// A handle points to a shell: a flag that says whether it is alive, and its content. Destroying a handle empties its shell
// and puts it at the end of a free list. New handles reuse a shell only when more than kKept shells are free, so a stale
// handle finds a dead shell in valid memory. The check costs one load.
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
struct Shell {
  std::atomic<bool> alive{false};
  std::unique_ptr<Content> content;
  Shell* next = nullptr;  // next free shell; an intrusive list, so destroying a handle allocates nothing
};

template <typename Handle>  // derives from Shell<Content>
class HandleShells {
 public:
  template <typename Content>
  Handle* put(std::unique_ptr<Content> content) {
    Handle* const shell = take();
    shell->content = std::move(content);
    shell->alive.store(true, std::memory_order_release);
    return shell;
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
  static HandleShells& instance() {
    static HandleShells* const shells = new HandleShells;
    return *shells;
  }

 private:
  static constexpr size_t kKept = 1024;

  Handle* take() {
    const std::lock_guard lock(mutex_);
    if (empty_ <= kKept) return &all_.emplace_back();
    Handle* const shell = oldest_;
    oldest_ = static_cast<Handle*>(shell->next);
    shell->next = nullptr;
    --empty_;
    return shell;
  }

  Mutex mutex_{LockRow::handles};
  std::deque<Handle> all_;
  Handle *oldest_ = nullptr, *newest_ = nullptr;  // the ends of the free list
  size_t empty_ = 0;
};

}  // namespace lamina
