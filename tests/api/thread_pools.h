// Thread pools like those of frameworks (lamina::graph::threadpool).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "graph/lamina.hpp"

namespace api_test {

// A queue of work items. The calling thread runs items too (`caller_helps`), or only waits.
class QueuePool final : public lamina::graph::threadpool {
 public:
  using Work = void (*)(void* state, int index);

  explicit QueuePool(int threads, bool caller_helps = true) : caller_helps_(caller_helps) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~QueuePool() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  QueuePool(const QueuePool&) = delete;
  QueuePool& operator=(const QueuePool&) = delete;

  int num_threads() const override { return static_cast<int>(threads_.size()); }
  bool in_parallel() const override { return pool_of_this_thread() == this; }
  void parallel_for(int count, Work work, void* state) override {
    ++calls;
    int left = count;
    {
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < count; ++i) items_.push_back({work, state, i, &left});
    }
    changed_.notify_all();
    std::unique_lock lock(mutex_);
    while (left > 0) {
      if (!caller_helps_ || !run_one(lock)) changed_.wait(lock);
    }
  }

  std::atomic<int> calls = 0;  // number of parallel_for calls

 private:
  struct Item {
    Work work;
    void* state;
    int index;
    int* left;
  };
  static const QueuePool*& pool_of_this_thread() {
    thread_local const QueuePool* pool = nullptr;
    return pool;
  }
  void serve() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      if (!run_one(lock)) changed_.wait(lock);
    }
  }
  // Runs one item of any caller; returns false if there is none.
  bool run_one(std::unique_lock<std::mutex>& lock) {
    if (items_.empty()) return false;
    const Item item = items_.front();
    items_.pop_front();
    lock.unlock();
    const QueuePool* const before = std::exchange(pool_of_this_thread(), this);
    item.work(item.state, item.index);
    pool_of_this_thread() = before;
    lock.lock();
    if (--*item.left == 0) changed_.notify_all();
    return true;
  }

  bool caller_helps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

// Reports many threads but runs all items on the calling thread, in reverse order.
class CallerPool final : public lamina::graph::threadpool {
 public:
  explicit CallerPool(int threads) : threads_(threads) {}
  int num_threads() const override { return threads_; }
  bool in_parallel() const override { return false; }
  void parallel_for(int count, void (*work)(void* state, int index), void* state) override {
    for (int i = count; i-- > 0;) work(state, i);
  }

 private:
  int threads_;
};

}  // namespace api_test
