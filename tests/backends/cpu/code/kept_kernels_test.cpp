// Which compiled kernels are kept, and that code lives as long as somebody has it.
#include "backends/cpu/code/kept_kernels.h"

#include <gtest/gtest.h>

namespace lamina::testing {
namespace {

using cpu::CompiledKernel;
using cpu::KeptKernels;

CompiledKernel named(const std::string& symbol) { return {nullptr, symbol, false, std::make_shared<int>()}; }

TEST(KeptKernels, AreFoundByTheirKey) {
  KeptKernels kept(2);
  EXPECT_FALSE(kept.find("a"));
  kept.keep("a", named("kernel a"));
  ASSERT_TRUE(kept.find("a"));
  EXPECT_EQ(kept.find("a")->symbol, "kernel a");
}

TEST(KeptKernels, GiveWayInTheOrderInWhichTheyWereAskedForLast) {
  KeptKernels kept(3);
  for (const char* const key : {"a", "b", "c"}) kept.keep(key, named(key));
  EXPECT_TRUE(kept.find("a"));
  kept.keep("d", named("d"));
  EXPECT_FALSE(kept.find("b"));
  kept.keep("e", named("e"));
  EXPECT_FALSE(kept.find("c"));
  for (const char* const key : {"a", "d", "e"}) EXPECT_TRUE(kept.find(key)) << key;
}

TEST(KeptKernels, CodeGoesWithTheLastOneThatHoldsIt) {
  KeptKernels kept(1);
  kept.keep("a", named("a"));
  CompiledKernel held = *kept.find("a");
  const std::weak_ptr<const void> code = held.memory;
  kept.keep("b", named("b"));
  EXPECT_FALSE(kept.find("a"));
  EXPECT_FALSE(code.expired());
  held = {};
  EXPECT_TRUE(code.expired());
}

}  // namespace
}  // namespace lamina::testing
