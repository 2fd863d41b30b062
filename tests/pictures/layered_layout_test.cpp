// Boxes in layers: boxes do not overlap, edges point downwards, and simple graphs have simple layouts.
#include "pictures/layered_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "interface/status.h"

namespace lamina::pictures {
namespace {

constexpr Size kBox{100, 40};
constexpr Gaps kGaps{16, 34};

double middle(const LayeredLayout& layout, size_t node, Size size = kBox) { return layout.nodes[node].x + size.width / 2; }

void expect_sound(const LayeredLayout& layout, const std::vector<Size>& sizes, const std::vector<Edge>& edges) {
  for (size_t a = 0; a < sizes.size(); ++a) {
    EXPECT_GE(layout.nodes[a].x, -1e-6);
    EXPECT_LE(layout.nodes[a].x + sizes[a].width, layout.size.width + 1e-6);
    EXPECT_LE(layout.nodes[a].y + sizes[a].height, layout.size.height + 1e-6);
    for (size_t b = a + 1; b < sizes.size(); ++b) {
      const bool beside = layout.nodes[a].x + sizes[a].width + kGaps.beside <= layout.nodes[b].x + 1e-6 ||
                          layout.nodes[b].x + sizes[b].width + kGaps.beside <= layout.nodes[a].x + 1e-6;
      EXPECT_TRUE(layout.layers[a] != layout.layers[b] || beside) << a << " and " << b << " overlap";
    }
  }
  for (size_t e = 0; e < edges.size(); ++e) {
    double y = layout.nodes[edges[e].from].y + sizes[edges[e].from].height;
    for (const Point& bend : layout.bends[e]) {
      EXPECT_GE(bend.y, y);
      y = bend.y;
    }
    EXPECT_GE(layout.nodes[edges[e].to].y, y + kGaps.below - 1e-6);
  }
}

TEST(LayeredLayout, PutsAChainBelowOneAnother) {
  const std::vector<Size> sizes(4, kBox);
  const std::vector<Edge> edges = {{0, 1}, {1, 2}, {2, 3}};
  const LayeredLayout layout = layered_layout(sizes, edges, kGaps);
  expect_sound(layout, sizes, edges);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(layout.nodes[i].x, 0);
    EXPECT_DOUBLE_EQ(layout.nodes[i].y, static_cast<double>(i) * (kBox.height + kGaps.below));
  }
}

//   0 ──> 1 ──> 2 ──> 3      and      0 ──────────────> 3
TEST(LayeredLayout, LeadsALongEdgePastWhatLiesBetween) {
  const std::vector<Size> sizes(4, kBox);
  const std::vector<Edge> edges = {{0, 1}, {1, 2}, {2, 3}, {0, 3}};
  const LayeredLayout layout = layered_layout(sizes, edges, kGaps);
  expect_sound(layout, sizes, edges);
  ASSERT_EQ(layout.bends[3].size(), 4u);  // straight through two layers
  for (const Point& bend : layout.bends[3]) {
    for (const size_t passed : {1, 2}) {
      EXPECT_TRUE(bend.x < layout.nodes[passed].x || bend.x > layout.nodes[passed].x + kBox.width);
    }
  }
}

// A parameter with a single consumer is directly above it and does not shift the chain.
TEST(LayeredLayout, KeepsAChainStraightBesideItsParameters) {
  // 0 ──> 1 ──> 2 ──> 3, each except the first with two parameters
  std::vector<Size> sizes(10, kBox);
  std::vector<Edge> edges = {{0, 1}, {1, 2}, {2, 3}};
  for (size_t op = 1; op <= 3; ++op)
    for (size_t i = 0; i < 2; ++i) edges.push_back({2 + 2 * op + i, op});
  const LayeredLayout layout = layered_layout(sizes, edges, kGaps);
  expect_sound(layout, sizes, edges);
  EXPECT_EQ(layout.layers[8], layout.layers[3] - 1);
  for (size_t op = 2; op <= 3; ++op) EXPECT_NEAR(middle(layout, op), middle(layout, 1), kBox.width / 5);
}

TEST(LayeredLayout, UncrossesTwoChains) {
  // 0 -> 3 and 1 -> 2: in the order of their numbers, the edges would cross
  const std::vector<Size> sizes(4, kBox);
  const std::vector<Edge> edges = {{0, 3}, {1, 2}};
  const LayeredLayout layout = layered_layout(sizes, edges, kGaps);
  expect_sound(layout, sizes, edges);
  EXPECT_EQ(middle(layout, 0) < middle(layout, 1), middle(layout, 3) < middle(layout, 2));
}

TEST(LayeredLayout, HoldsForGraphsOfAllKinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    const size_t count = 1 + random() % 60;
    std::vector<Size> sizes;
    std::vector<Edge> edges;
    for (size_t i = 0; i < count; ++i) {
      sizes.push_back({20.0 + static_cast<double>(random() % 200), 20.0 + static_cast<double>(random() % 60)});
      for (size_t k = 0; i > 0 && k < random() % 4; ++k) edges.push_back({random() % i, i});
    }
    expect_sound(layered_layout(sizes, edges, kGaps), sizes, edges);
  }
}

TEST(LayeredLayout, TakesNothingAndRefusesACycle) {
  EXPECT_EQ(layered_layout({}, {}).nodes.size(), 0u);
  EXPECT_THROW(layered_layout({kBox, kBox}, {{0, 1}, {1, 0}}), Error);
}

}  // namespace
}  // namespace lamina::pictures
