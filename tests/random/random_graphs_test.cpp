// A few hundred random graphs, the same in every run. The program random_graphs tests more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "random/drawn.h"
#include "random/find_fault.h"
#include "random/random_layout.h"
#include "random/random_recipe.h"

namespace lamina::testing {
namespace {

using ::testing::IsEmpty;

// Every op kind comes first in at least two graphs.
constexpr uint64_t kGraphs = 240;

TEST(RandomGraphs, HaveNoFaultOnTheCpu) {
  size_t kernels = 0, partitions = 0;
  Drawn drawn;
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const Recipe recipe = random_recipe(seed);
    drawn.count(recipe);
    const Findings findings = find_fault(recipe, cpu_backend(), seed);
    EXPECT_EQ(findings.fault, "");
    kernels += findings.kernels;
    const auto found = findings.partitions.find("cpu");
    partitions += found == findings.partitions.end() ? 0 : found->second;
  }
  EXPECT_GE(kernels, kGraphs);
  EXPECT_GE(partitions, kGraphs);
  EXPECT_THAT(drawn.kinds_never_drawn(), IsEmpty());
}

// These graphs are generated but not executed. A manual run of 20,000 graphs starts with them.
TEST(RandomGraphs, HoldAllTypesAndLayoutsThatSchemasAllow) {
  Drawn drawn;
  for (uint64_t seed = 1; seed <= 60000; ++seed) drawn.count(random_recipe(seed));
  EXPECT_THAT(drawn.types_never_drawn(), IsEmpty());
  EXPECT_THAT(drawn.layouts_never_drawn(), IsEmpty());
}

TEST(RandomLayout, IsTheOneThatWasAskedFor) {
  Rng rng(1);
  for (const Layout layout : kLayouts) {
    std::set<Layout> drawn;
    for (int i = 0; i < 50; ++i) {
      LogicalTensor tensor;
      tensor.shape = Dims{3, 4, 5};
      tensor.strides = strides_in(layout, *tensor.shape, rng);
      drawn.insert(layout_of(tensor));
    }
    EXPECT_TRUE(drawn.contains(layout)) << name_of(layout);
  }
}

TEST(RandomGraphs, AreLegal) {
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_NO_THROW(random_recipe(seed).build());
  }
}

TEST(Recipe, WithoutAStepStillReadsWhatItMade) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    const Recipe recipe = random_recipe(seed);
    for (size_t step = 0; step < recipe.steps.size(); ++step) {
      const Recipe smaller = recipe.without(step);
      EXPECT_EQ(smaller.steps.size() + 1, recipe.steps.size());
      EXPECT_NO_THROW(smaller.build());
    }
  }
}

}  // namespace
}  // namespace lamina::testing
