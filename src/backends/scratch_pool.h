// Scratch memory of one executable. Each execution leases a block and returns it, even if it fails. Later executions reuse the
// block. A thread finds the block that it returned last, which is in its caches, without a lock: threads that run the same
// executable at the same time do not wait for each other.
//
// A Block is one piece of memory of a backend. Its destructor frees the memory as soon as no work uses it. A Block also has
//   void* memory() const
//   bool suits(const ExecutionContext&) const   whether an execution may use the block while work of the last one may still run
//   void acquire(const ExecutionContext&)       called before an execution uses the block
//   void release(const ExecutionContext&)       called after an execution has submitted all its work
// and, if several users share an executable,
//   ScratchOwner owner() const                  whose allocator it is from
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "handles/locks.h"

namespace lamina {

// Frees memory: the function of a caller's allocator. Null: lamina frees it.
using ScratchOwner = void (*)(void*);

// Threads are numbered in the order of their first lease.
inline size_t number_of_thread() {
  static std::atomic<size_t> threads = 0;
  thread_local const size_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

// Thread-safe. All blocks have the same size.
template <typename Block>
class ScratchPool {
 public:
  using Make = std::function<std::unique_ptr<Block>(size_t bytes, const ExecutionContext& context)>;
  explicit ScratchPool(Make make) : make_(std::move(make)) {}

  // The memory of one execution: the caller's workspace if there is one, else a block.
  class Lease {
   public:
    Lease(ScratchPool& pool, size_t bytes, const ExecutionContext& context) : pool_(pool), context_(context) {
      if (bytes > 0 && context.workspace == nullptr) block_ = pool.take(bytes, context);
    }
    // Also runs if the execution fails. A block that cannot be returned is freed instead of reused.
    ~Lease() {
      try {
        end();
      } catch (...) {
        block_.reset();
      }
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    void* memory() const { return block_ == nullptr ? context_.workspace : block_->memory(); }
    void end() {
      if (block_ == nullptr) return;
      block_->release(context_);
      pool_.recycle(std::move(block_));
    }

   private:
    ScratchPool& pool_;
    const ExecutionContext& context_;
    std::unique_ptr<Block> block_;
  };

  // Users of one owner's memory are counted. With the last of them the idle memory of that owner goes, and so does memory of
  // owners that have no user.
  void begin_use(ScratchOwner owner) {
    const std::lock_guard lock(mutex_);
    const auto found = find_user(owner);
    if (found == users_.end())
      users_.emplace_back(owner, 1);
    else
      ++found->second;
  }
  void end_use(ScratchOwner owner) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = find_user(owner);
      if (found != users_.end() && --found->second == 0) users_.erase(found);
    }
    for (Near& near : near_) near.keep_if(near.take(), [&](const Block& block) { return is_owned(block); });
    while (take_unowned() != nullptr) {
    }
  }

 private:
  std::unique_ptr<Block> take(size_t bytes, const ExecutionContext& context) {
    std::unique_ptr<Block> block = take_idle(context);
    if (block == nullptr) block = make_(bytes, context);
    block->acquire(context);
    return block;
  }
  std::unique_ptr<Block> take_idle(const ExecutionContext& context) {
    std::unique_ptr<Block> block = near().take();
    if (block != nullptr && block->suits(context)) return block;
    if (block != nullptr) add_idle(std::move(block));
    block = take_listed(context);
    for (size_t i = 0; i < near_.size() && block == nullptr; ++i) {
      block = near_[i].take();
      if (block == nullptr || block->suits(context)) continue;
      near_[i].keep_if(std::move(block), [](const Block&) { return true; });
    }
    return block;
  }
  std::unique_ptr<Block> take_listed(const ExecutionContext& context) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const auto& block) { return block->suits(context); });
    if (found == idle_.end()) return nullptr;
    std::unique_ptr<Block> block = std::move(*found);
    idle_.erase(found);
    return block;
  }
  // An idle block of an owner without users, or null. The caller frees it, without holding the lock.
  std::unique_ptr<Block> take_unowned() {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(idle_.begin(), idle_.end(), [&](const auto& block) { return find_user(block->owner()) == users_.end(); });
    if (found == idle_.end()) return nullptr;
    std::unique_ptr<Block> block = std::move(*found);
    idle_.erase(found);
    return block;
  }
  bool is_owned(const Block& block) {
    const std::lock_guard lock(mutex_);
    return find_user(block.owner()) != users_.end();
  }
  void recycle(std::unique_ptr<Block> block) {
    if (!near().keep(block)) add_idle(std::move(block));
  }
  void add_idle(std::unique_ptr<Block> block) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(block));
  }

  // The idle block of the threads of one number modulo kNear. Only an exchange takes or returns it.
  class alignas(64) Near {
   public:
    Near() = default;
    ~Near() { delete block_.load(); }
    Near(const Near&) = delete;
    Near& operator=(const Near&) = delete;

    std::unique_ptr<Block> take() { return std::unique_ptr<Block>(block_.exchange(nullptr)); }
    // Returns false and leaves `block` if there is one already.
    bool keep(std::unique_ptr<Block>& block) {
      Block* none = nullptr;
      if (!block_.compare_exchange_strong(none, block.get())) return false;
      block.release();
      return true;
    }
    // Frees the block otherwise, and if another thread has returned one meanwhile.
    template <typename Condition>
    void keep_if(std::unique_ptr<Block> block, const Condition& condition) {
      if (block != nullptr && condition(*block)) static_cast<void>(keep(block));
    }

   private:
    std::atomic<Block*> block_ = nullptr;
  };
  static constexpr size_t kNear = 16;
  Near& near() { return near_[number_of_thread() % kNear]; }

  using Users = std::vector<std::pair<ScratchOwner, size_t>>;
  typename Users::iterator find_user(ScratchOwner owner) {
    return std::find_if(users_.begin(), users_.end(), [&](const auto& each) { return each.first == owner; });
  }

  Make make_;
  std::array<Near, kNear> near_;
  Mutex mutex_{LockRow::scratch_pool};
  std::vector<std::unique_ptr<Block>> idle_;
  Users users_;
};

}  // namespace lamina
