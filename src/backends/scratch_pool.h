// Scratch memory of one executable: lent for the time of an execution, also of one that fails, and kept for the next one.
//
// A Block is one piece of memory as a backend knows it; its destructor gives the memory back to where it came from, when
// nothing uses it any more. Besides it has
//   void* memory() const
//   bool suits(const ExecutionContext&) const      whether an execution may have it that has ended, but may not be done
//   void lend(const ExecutionContext&)             before an execution uses it
//   void give_back(const ExecutionContext&)        when the execution has been given all its work
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "handles/locks.h"

namespace lamina {

// Thread-safe. All blocks are of one size.
template <typename Block>
class ScratchPool {
 public:
  using Make = std::function<std::unique_ptr<Block>(size_t bytes, const ExecutionContext& context)>;
  explicit ScratchPool(Make make) : make_(std::move(make)) {}

  // What one execution has: the caller's workspace where there is one, else a block.
  class Loan {
   public:
    Loan(ScratchPool& pool, size_t bytes, const ExecutionContext& context) : pool_(pool), context_(context) {
      if (bytes > 0 && context.workspace == nullptr) block_ = pool.take(bytes, context);
    }
    // Of an execution that failed. A block that cannot be given back is not lent again.
    ~Loan() {
      try {
        end();
      } catch (...) {
        block_.reset();
      }
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    void* memory() const { return block_ == nullptr ? context_.workspace : block_->memory(); }
    void end() {
      if (block_ == nullptr) return;
      block_->give_back(context_);
      pool_.keep(std::move(block_));
    }

   private:
    ScratchPool& pool_;
    const ExecutionContext& context_;
    std::unique_ptr<Block> block_;
  };

  void release_idle() {
    std::vector<std::unique_ptr<Block>> idle;
    const std::lock_guard lock(mutex_);
    idle.swap(idle_);
  }

 private:
  std::unique_ptr<Block> take(size_t bytes, const ExecutionContext& context) {
    std::unique_ptr<Block> block = take_idle(context);
    if (block == nullptr) block = make_(bytes, context);
    block->lend(context);
    return block;
  }
  std::unique_ptr<Block> take_idle(const ExecutionContext& context) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const auto& block) { return block->suits(context); });
    if (found == idle_.end()) return nullptr;
    std::unique_ptr<Block> block = std::move(*found);
    idle_.erase(found);
    return block;
  }
  void keep(std::unique_ptr<Block> block) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(block));
  }

  Make make_;
  Mutex mutex_{LockRow::scratch_pool};
  std::vector<std::unique_ptr<Block>> idle_;
};

}  // namespace lamina
