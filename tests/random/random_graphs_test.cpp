// A few hundred random graphs, the same ones each time; tests/random/random_graphs looks at more.
#include <gtest/gtest.h>

#include <set>

#include "random/find_fault.h"
#include "random/random_recipe.h"

namespace lamina::testing {
namespace {

constexpr uint64_t kGraphs = 200;

TEST(RandomGraphs, HaveNoFaultOnTheCpu) {
  size_t kernels = 0, partitions = 0;
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const Findings findings = find_fault(random_recipe(seed), cpu_backend(), seed);
    EXPECT_EQ(findings.fault, "");
    kernels += findings.kernels;
    const auto found = findings.partitions.find("cpu");
    partitions += found == findings.partitions.end() ? 0 : found->second;
  }
  EXPECT_GE(kernels, kGraphs);
  EXPECT_GE(partitions, kGraphs);
}

TEST(RandomGraphs, HoldAllKindsOfOps) {
  std::set<OpKind> kinds;
  for (uint64_t seed = 1; seed <= 4 * kGraphs; ++seed) {
    for (const Step& step : random_recipe(seed).steps) kinds.insert(step.kind);
  }
  for (const OpKind kind : all_op_kinds()) {
    const bool is_made = kinds.contains(kind) || kind == OpKind::End || kind == OpKind::Wildcard;
    EXPECT_TRUE(is_made) << name_of(kind);
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
