// Parts of concatenations in the memory of the result.
#include "kernels/joined_values.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "support/graph_builder.h"

namespace lamina::kernel {
namespace {

using testing::GraphBuilder;
using testing::with_strides;
constexpr DataType f32 = DataType::f32;

uint64_t concat(GraphBuilder& g, const std::vector<uint64_t>& parts, int64_t axis) {
  return g.op(OpKind::Concat, parts, {{"axis", axis}});
}

std::map<uint64_t, std::pair<uint64_t, int64_t>> joined(GraphBuilder& g) {
  const Graph graph = with_strides(g.finish());
  std::map<uint64_t, std::pair<uint64_t, int64_t>> places;
  for (const auto& [value, place] : joined_values(graph, graph.outputs()))
    places[graph.tensor(value).id] = {graph.tensor(place.result).id, place.bytes};
  return places;
}

TEST(JoinedValues, PartsAlongTheOutermostAxisLieInTheResult) {
  GraphBuilder g;
  const auto x = g.input(f32, {3, 4}), a = g.op(OpKind::Abs, {x}), b = g.op(OpKind::Exp, {x}), c = concat(g, {a, b}, 0);
  g.op(OpKind::ReLU, {c});
  EXPECT_EQ(joined(g), (std::map<uint64_t, std::pair<uint64_t, int64_t>>{{a, {c, 0}}, {b, {c, 48}}}));
}

TEST(JoinedValues, APartOfOtherStridesIsCopied) {
  GraphBuilder g;
  const auto x = g.input(f32, {3, 4});
  g.op(OpKind::ReLU, {concat(g, {g.op(OpKind::Abs, {x}), g.op(OpKind::Exp, {x})}, 1)});
  EXPECT_TRUE(joined(g).empty());
}

TEST(JoinedValues, AxesOfExtentOneDoNotMatter) {
  GraphBuilder g;
  const auto x = g.input(f32, {1, 3, 4}), a = g.op(OpKind::Abs, {x}), c = concat(g, {x, a}, 1);
  g.op(OpKind::ReLU, {c});
  EXPECT_EQ(joined(g), (std::map<uint64_t, std::pair<uint64_t, int64_t>>{{a, {c, 48}}}));
}

TEST(JoinedValues, AUsersTensorIsCopied) {
  GraphBuilder g;
  const auto x = g.input(f32, {3, 4}), a = g.op(OpKind::Abs, {x});
  g.output(a);
  concat(g, {x, a}, 0);
  EXPECT_TRUE(joined(g).empty());
}

TEST(JoinedValues, AValueThatIsJoinedTwiceLiesInTheFirstPlace) {
  GraphBuilder g;
  const auto a = g.op(OpKind::Abs, {g.input(f32, {3, 4})}), c = concat(g, {a, a}, 0);
  concat(g, {a, c}, 0);
  const auto places = joined(g);
  EXPECT_EQ(places.at(a), (std::pair<uint64_t, int64_t>{c, 0}));
}

}  // namespace
}  // namespace lamina::kernel
