// The cache of compiled kernels: which ones it keeps, and that code exists as long as a user holds it.
#include "backends/cpu/code/kernel_cache.h"

#include <gtest/gtest.h>

namespace lamina::testing {
namespace {

using cpu::CompiledCode;
using cpu::KernelCache;

CompiledCode named(const std::string& symbol) { return {nullptr, symbol, false, std::make_shared<int>()}; }

TEST(KernelCache, AreFoundByTheirKey) {
  KernelCache cache(2);
  EXPECT_FALSE(cache.find("a"));
  cache.insert("a", named("kernel a"));
  ASSERT_TRUE(cache.find("a"));
  EXPECT_EQ(cache.find("a")->symbol, "kernel a");
}

TEST(KernelCache, GiveWayInTheOrderInWhichTheyWereAskedForLast) {
  KernelCache cache(3);
  for (const char* const key : {"a", "b", "c"}) cache.insert(key, named(key));
  EXPECT_TRUE(cache.find("a"));
  cache.insert("d", named("d"));
  EXPECT_FALSE(cache.find("b"));
  cache.insert("e", named("e"));
  EXPECT_FALSE(cache.find("c"));
  for (const char* const key : {"a", "d", "e"}) EXPECT_TRUE(cache.find(key)) << key;
}

TEST(KernelCache, CodeGoesWithTheLastOneThatHoldsIt) {
  KernelCache cache(1);
  cache.insert("a", named("a"));
  CompiledCode held = *cache.find("a");
  const std::weak_ptr<const void> code = held.memory;
  cache.insert("b", named("b"));
  EXPECT_FALSE(cache.find("a"));
  EXPECT_FALSE(code.expired());
  held = {};
  EXPECT_TRUE(code.expired());
}

}  // namespace
}  // namespace lamina::testing
