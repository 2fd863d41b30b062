// Groups that reach each other are merged; all others are unchanged.
#include "pictures/acyclic_groups.h"

#include <gtest/gtest.h>

#include <vector>

namespace lamina::pictures {
namespace {

using Groups = std::vector<size_t>;

TEST(AcyclicGroups, AreNumberedByTheirFirstNodes) {
  EXPECT_EQ(acyclic_groups({7, 3, 7, 9}, {{0, 1}, {1, 3}}), (Groups{0, 1, 0, 2}));
  EXPECT_EQ(acyclic_groups({}, {}), Groups{});
}

TEST(AcyclicGroups, JoinsGroupsThatReachEachOther) {
  // 0 ──> 1 ──> 2 with 0 and 2 in one group: 1 is between them.
  EXPECT_EQ(acyclic_groups({0, 1, 0}, {{0, 1}, {1, 2}}), (Groups{0, 0, 0}));
  // A cycle of three groups is merged; the group after it remains separate.
  EXPECT_EQ(acyclic_groups({0, 1, 2, 0, 4}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}), (Groups{0, 0, 0, 0, 1}));
}

TEST(AcyclicGroups, KeepsGroupsInAChainApart) {
  EXPECT_EQ(acyclic_groups({0, 0, 1, 1}, {{0, 2}, {1, 3}, {0, 1}}), (Groups{0, 0, 1, 1}));
}

TEST(AcyclicGroups, WalksLongChains) {
  constexpr size_t kNodes = 100'000;
  Groups groups;
  std::vector<Edge> edges;
  for (size_t i = 0; i < kNodes; ++i) groups.push_back(i);
  for (size_t i = 1; i < kNodes; ++i) edges.push_back({i - 1, i});
  EXPECT_EQ(acyclic_groups(groups, edges), groups);
  edges.push_back({kNodes - 1, 0});
  EXPECT_EQ(acyclic_groups(groups, edges), Groups(kNodes, 0));
}

}  // namespace
}  // namespace lamina::pictures
