// Handles of which a use after their destruction is found out.
//
// A handle points to a shell: a word that says whether it is alive, and what it holds. Destroying a handle empties its shell
// and keeps it; the next handles get other shells as long as there are kKept emptier ones, so a stale handle meets a dead
// shell, in memory that is still there. Looking costs one load.
//
// A header of its own room, which knows nothing of lamina: front ends over the public interface have handles too.
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
  Shell* next = nullptr;  // of the empty ones: to destroy a handle needs no memory
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

  // False when it was not alive: destroyed before.
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

  // For the life of the process: handles may be destroyed by the destructors of other static objects.
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
  Handle *oldest_ = nullptr, *newest_ = nullptr;  // of the empty ones
  size_t empty_ = 0;
};

}  // namespace lamina
