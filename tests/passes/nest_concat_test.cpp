// A concatenation reads the result of an earlier one that is its beginning.
#include "passes/nest_concat.h"

#include "passes/verify_graph.h"
#include "passes_test_support.h"

namespace lamina::testing {
namespace {

const Attributes kAxis{{"axis", int64_t{1}}};

// The number of inputs of each Concat.
std::vector<size_t> parts_after(const Graph& graph) {
  const auto nested = nest_concat(graph);
  const Graph& after = nested ? *nested : graph;
  verify_graph(after, "nest_concat");
  std::vector<size_t> parts;
  for (const Op& op : after.ops()) {
    check_op(OpView(after, op));
    parts.push_back(op.inputs.size());
  }
  return parts;
}

struct Inputs {
  explicit Inputs(GraphBuilder& g) : a(g.input(f32, {2, 3})), b(g.input(f32, {2, 4})), c(g.input(f32, {2, 5})) {}
  uint64_t a, b, c;
};

TEST(NestConcat, TakesTheLongestEarlierResult) {
  GraphBuilder g;
  const Inputs of(g);
  g.op(OpKind::Concat, {of.a, of.b}, kAxis);
  g.op(OpKind::Concat, {of.a, of.b, of.c}, kAxis);
  g.op(OpKind::Concat, {of.a, of.b, of.c, of.a}, kAxis);
  EXPECT_EQ(parts_after(g.finish()), (std::vector<size_t>{2, 2, 2}));
}

TEST(NestConcat, LeavesOtherConcatenations) {
  GraphBuilder g;
  const Inputs of(g);
  g.op(OpKind::Concat, {of.a, of.b, of.c}, kAxis);
  g.op(OpKind::Concat, {of.a, of.b, of.c}, kAxis);  // the same
  g.op(OpKind::Concat, {of.a, of.b}, kAxis);        // later
  g.op(OpKind::Concat, {of.b, of.a, of.c}, kAxis);  // another order
  EXPECT_EQ(parts_after(g.finish()), (std::vector<size_t>{3, 3, 2, 3}));
}

TEST(NestConcat, ComparesTheAxis) {
  GraphBuilder g;
  const auto a = g.input(f32, {2, 2}), b = g.input(f32, {2, 2}), c = g.input(f32, {2, 2});
  g.op(OpKind::Concat, {a, b}, {{"axis", int64_t{0}}});
  g.op(OpKind::Concat, {a, b, c}, kAxis);
  EXPECT_EQ(parts_after(g.finish()), (std::vector<size_t>{2, 3}));
}

}  // namespace
}  // namespace lamina::testing
