// The program cache of a device: programs are compiled once, concurrently, and unused ones are evicted.
#include "backends/gpu/module_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include "interface/status.h"

namespace lamina::testing {
namespace {

using gpu::LoadedModule;
using gpu::ModuleCache;

class CountedModule final : public gpu::Module {
 public:
  explicit CountedModule(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~CountedModule() override { --alive_; }
  void launch(void*, size_t, int64_t, int, std::span<const gpu::BufferView>, std::span<const int64_t>) const override {}

 private:
  std::atomic<int>& alive_;
};

class GpuModuleCache : public ::testing::Test {
 protected:
  LoadedModule load(const std::string& text) {
    return cache_.get(text, [&]() -> LoadedModule { return {std::make_shared<CountedModule>(alive_), false}; });
  }

  std::atomic<int> alive_ = 0;
  ModuleCache cache_;
};

TEST_F(GpuModuleCache, FindsWhatItMade) {
  const LoadedModule first = load("a"), second = load("a");
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(first.module, second.module);
  EXPECT_NE(load("b").module, first.module);
}

TEST_F(GpuModuleCache, DropsProgramsThatNoKernelUses) {
  const LoadedModule used = load("used");
  for (size_t i = 0; i < 3 * ModuleCache::kCapacity; ++i) load(std::to_string(i));
  EXPECT_LE(alive_, static_cast<int>(ModuleCache::kCapacity));
  EXPECT_TRUE(load("used").from_cache);
}

TEST_F(GpuModuleCache, MakesAProgramOnceForThreadsThatAskTogether) {
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      cache_.get("a", [&]() -> LoadedModule {
        ++made;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return {std::make_shared<CountedModule>(alive_), false};
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
}

// Each compiler waits for the other: without concurrency, this would hang.
TEST_F(GpuModuleCache, MakesDifferentProgramsSideBySide) {
  std::latch both(2);
  const auto make = [&]() -> LoadedModule {
    both.arrive_and_wait();
    return {std::make_shared<CountedModule>(alive_), false};
  };
  std::thread other([&] { cache_.get("a", make); });
  cache_.get("b", make);
  other.join();
  EXPECT_EQ(alive_, 2);
}

TEST_F(GpuModuleCache, AFailureIsThrownAndTheNextCallTriesAgain) {
  EXPECT_THROW(cache_.get("a", []() -> LoadedModule { throw Error(Status::runtime_error, "no"); }), Error);
  EXPECT_FALSE(load("a").from_cache);
}

}  // namespace
}  // namespace lamina::testing
