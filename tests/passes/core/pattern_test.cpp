// The pattern language: one small pattern per feature, with a graph that matches and one that does not.
#include "passes/core/pattern.h"

#include "passes/passes_test_support.h"

namespace lamina::testing {
namespace {

using namespace pattern;
using ::testing::ElementsAre;

bool matches(const Graph& graph, const Pattern& pattern, int root) {
  return match(graph, pattern, root, [](const Match&) { return true; }) == Outcome::matched;
}
bool matches(GraphBuilder& g, const Term& body) {
  const Graph graph = g.finish();
  return matches(graph, {"it", body}, static_cast<int>(graph.ops().size()) - 1);
}
// Returns the positions of the ops matched from the last op on.
std::vector<int> matched_ops(GraphBuilder& g, const Pattern& pattern) {
  const Graph graph = g.finish();
  std::vector<int> ops;
  match(graph, pattern, static_cast<int>(graph.ops().size()) - 1, [&](const Match& found) {
    ops = found.ops();
    return true;
  });
  return ops;
}

TEST(Pattern, AnOpMatchesItsKind) {
  GraphBuilder g;
  g.op(OpKind::Exp, {g.input(f32, {4})});
  EXPECT_TRUE(matches(g, op(OpKind::Exp, {value("x")})));
  EXPECT_FALSE(matches(g, op(OpKind::Log, {value("x")})));
}

TEST(Pattern, AnOpMatchesItsClass) {
  GraphBuilder g;
  g.op(OpKind::Exp, {g.input(f32, {4})});
  EXPECT_TRUE(matches(g, op(OpClass::elementwise, {value("x")})));
  EXPECT_FALSE(matches(g, op(OpClass::inner_reduction, {value("x")})));
}

TEST(Pattern, AttributesArePartOfIt) {
  GraphBuilder g;
  g.op(OpKind::Pow, {g.input(f32, {4})}, {{"beta", 2.0F}});
  const auto beta_is = [](float beta) {
    return op(OpKind::Pow, {value("x")}).where([=](const Op& pow) { return pow.attribute<float>("beta") == beta; });
  };
  EXPECT_TRUE(matches(g, beta_is(2)));
  EXPECT_FALSE(matches(g, beta_is(3)));
}

TEST(Pattern, ANameIsOneValue) {
  GraphBuilder g;
  const auto x = g.input(f32, {4}), y = g.input(f32, {4});
  g.op(OpKind::Subtract, {x, x});
  EXPECT_TRUE(matches(g, op(OpKind::Subtract, {value("x"), value("x")})));
  g.op(OpKind::Subtract, {x, y});
  EXPECT_FALSE(matches(g, op(OpKind::Subtract, {value("x"), value("x")})));
  EXPECT_TRUE(matches(g, op(OpKind::Subtract, {value("x"), value("y")})));
}

TEST(Pattern, AWidenedValueIsTheSameValue) {
  GraphBuilder g;
  const auto x = g.input(bf16, {4});
  const auto wide = g.op(OpKind::TypeCast, {x}, {}, f32), narrow = g.op(OpKind::TypeCast, {wide}, {}, f16);
  const auto other = g.op(OpKind::TypeCast, {narrow}, {}, f32);
  g.op(OpKind::Subtract, {x, wide}, {}, f32);
  EXPECT_TRUE(matches(g, op(OpKind::Subtract, {value("x"), value("x")})));
  g.op(OpKind::Subtract, {wide, other});
  EXPECT_FALSE(matches(g, op(OpKind::Subtract, {value("x"), value("x")})));
}

TEST(Pattern, CommutativeOperandsMatchExchanged) {
  for (const OpKind kind :
       {OpKind::Add, OpKind::Multiply, OpKind::Maximum, OpKind::Minimum, OpKind::Subtract, OpKind::Divide}) {
    GraphBuilder g;
    const auto x = g.input(f32, {4});
    g.op(kind, {g.op(OpKind::Exp, {x}), g.op(OpKind::Abs, {x})});
    const bool commutes = kind != OpKind::Subtract && kind != OpKind::Divide;
    EXPECT_TRUE(matches(g, op(kind, {op(OpKind::Exp, {value("x")}), op(OpKind::Abs, {value("x")})})));
    EXPECT_EQ(matches(g, op(kind, {op(OpKind::Abs, {value("x")}), op(OpKind::Exp, {value("x")})})), commutes) << name_of(kind);
  }
}

//   Abs ──┐
//         Add     the second operand may force another alternative for the first one
//   Abs ──┘
TEST(Pattern, AlternativesAreTriedTogether) {
  GraphBuilder g;
  const auto x = g.input(f32, {4}), y = g.input(f32, {4});
  g.op(OpKind::Subtract, {g.op(OpKind::Add, {x, y}), y});
  const Term either_of_them = op(OpKind::Add, {value("a"), value("b")});
  EXPECT_TRUE(matches(g, op(OpKind::Subtract, {either_of_them, value("a")})));
  EXPECT_TRUE(matches(g, op(OpKind::Subtract, {either_of_them, value("b")})));
  EXPECT_FALSE(matches(g, op(OpKind::Subtract, {either_of_them, op(OpKind::Exp, {value("a")})})));
}

TEST(Pattern, OptionalOpsMayBeMissing) {
  const Term body = op(OpKind::Add, {maybe(OpKind::Exp, op(OpKind::Abs, {value("x")})), value("y")});
  GraphBuilder with, without;
  with.op(OpKind::Add, {with.op(OpKind::Exp, {with.op(OpKind::Abs, {with.input(f32, {4})})}), with.input(f32, {4})});
  without.op(OpKind::Add, {without.op(OpKind::Abs, {without.input(f32, {4})}), without.input(f32, {4})});
  EXPECT_TRUE(matches(with, body));
  EXPECT_TRUE(matches(without, body));
}

TEST(Pattern, OptionalPortsMayBeLeftOut) {
  const auto mm = [](Term bias) { return op(OpKind::MatMul, {value("a"), value("b"), bias}); };
  GraphBuilder g;
  const auto a = g.input(f32, {4, 4}), b = g.input(f32, {4, 4});
  g.op(OpKind::MatMul, {a, b});
  EXPECT_TRUE(matches(g, mm(absent())));
  EXPECT_TRUE(matches(g, mm(either({absent(), value("bias")}))));
  EXPECT_FALSE(matches(g, mm(value("bias"))));
  g.op(OpKind::MatMul, {a, b, g.input(f32, {4})});
  EXPECT_FALSE(matches(g, mm(absent())));
  EXPECT_TRUE(matches(g, mm(either({absent(), value("bias")}))));
  EXPECT_FALSE(matches(g, op(OpKind::MatMul, {value("a"), value("b")})));  // the pattern does not constrain a third operand
}

//   x ──> MatMul ──> any elementwise ops, through either operand ──> dst
TEST(Pattern, RepeatedOpsReachThroughAnyOperand) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 4});
  const auto mm = g.op(OpKind::MatMul, {x, x});
  auto y = mm;
  for (int i = 0; i < 10; ++i) y = g.op(OpKind::Add, {g.input(f32, {4}), y});
  const Term body = many(OpClass::elementwise, op(OpKind::MatMul, {value("x"), value("x")}));
  EXPECT_EQ(matched_ops(g, {"it", body}).size(), 11U);
  g.op(OpKind::ReduceSum, {y}, {{"axes", std::vector<int64_t>{0}}});
  EXPECT_FALSE(matches(g, body));
}
TEST(Pattern, RepeatedOpsMayBeNone) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 4});
  g.op(OpKind::MatMul, {x, x});
  EXPECT_TRUE(matches(g, many(OpClass::elementwise, op(OpKind::MatMul, {value("x"), value("x")}))));
}

TEST(Pattern, NumbersAreThoseOfTheGraph) {
  GraphBuilder g;
  const auto x = g.input(f32, {4});
  g.op(OpKind::Multiply, {x, g.number(0.1)});
  EXPECT_TRUE(matches(g, value("x") * 0.1));
  EXPECT_TRUE(matches(g, value("x") * 0.10000004));
  EXPECT_FALSE(matches(g, value("x") * 0.1001));
  g.op(OpKind::Multiply, {x, g.constant(f32, {})});
  EXPECT_FALSE(matches(g, value("x") * number("c")));
}

TEST(Pattern, NumbersAreComparedAsTheirTypeRoundsThem) {
  GraphBuilder g;
  const auto x = g.input(bf16, {4});
  g.op(OpKind::Multiply, {x, g.number(1.0 / 768, bf16)});
  EXPECT_TRUE(matches(g, value("x") * (1.0 / 768)));
  EXPECT_FALSE(matches(g, value("x") * (1.0 / 760)));
}

TEST(Pattern, ANamedNumberIsOneNumber) {
  const Term body = (value("x") * number("c")) + number("c");
  GraphBuilder same, other;
  same.op(OpKind::Add, {same.op(OpKind::Multiply, {same.input(f32, {4}), same.number(3)}), same.number(3)});
  other.op(OpKind::Add, {other.op(OpKind::Multiply, {other.input(f32, {4}), other.number(3)}), other.number(4)});
  EXPECT_TRUE(matches(same, body));
  EXPECT_FALSE(matches(other, body));
}

TEST(Pattern, StepsOverOpsInBetween) {
  GraphBuilder g;
  const auto cast = g.op(OpKind::TypeCast, {g.op(OpKind::Exp, {g.input(f32, {4})})}, {}, bf16);
  g.op(OpKind::Abs, {g.op(OpKind::TypeCast, {cast}, {}, f32)});
  const Term body = op(OpKind::Abs, {op(OpKind::Exp, {value("x")})});
  EXPECT_THAT(matched_ops(g, {"it", body, [](const Graph&, const Op& op) { return op.kind == OpKind::TypeCast; }}),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(matched_ops(g, {"it", body}), ElementsAre());
}

TEST(Pattern, AcceptSendsTheSearchOn) {
  GraphBuilder g;
  const auto x = g.input(f32, {4}), y = g.input(f32, {8, 4});
  g.op(OpKind::Add, {x, y});
  const Graph graph = g.finish();
  std::vector<uint64_t> tried;
  const Outcome outcome = match(graph, {"it", value("a") + value("b")}, 0, [&](const Match& found) {
    tried.push_back(graph.tensor(found.value("a")).id);
    return false;
  });
  EXPECT_EQ(outcome, Outcome::none);
  EXPECT_THAT(tried, ElementsAre(x, y));
}

TEST(Pattern, TellsWhatItFound) {
  GraphBuilder g;
  const auto x = g.input(bf16, {4});
  const auto wide = g.op(OpKind::TypeCast, {x}, {}, f32);
  const auto e = g.op(OpKind::Exp, {wide});
  g.op(OpKind::Multiply, {e, g.number(5)});
  const Graph graph = g.finish();
  bool asked = false;
  match(graph, {"it", op(OpKind::Exp, {value("x")}).named("e") * number("five")}, 2, [&](const Match& found) {
    asked = true;
    EXPECT_EQ(found.root(), 2);
    EXPECT_EQ(graph.tensor(found.value("x")).id, wide);
    EXPECT_EQ(graph.tensor(found.value("x", bf16)).id, x);
    EXPECT_EQ(found.value("x", f64), kNoValue);
    EXPECT_EQ(found.value("y"), kNoValue);
    EXPECT_EQ(graph.tensor(found.made("e").at(0)).id, e);
    EXPECT_EQ(found.number("five"), 5.0);
    EXPECT_TRUE(found.is_number("five", 5));
    EXPECT_FALSE(found.is_number("five", 6));
    EXPECT_TRUE(found.is_number("six", 6));
    EXPECT_THAT(found.ops(), ElementsAre(1, 2));
    return true;
  });
  EXPECT_TRUE(asked);
}

TEST(Pattern, GivesUpASearchWithoutEnd) {
  // a + (a + (a + ...)) with both operand orders: naive matching fails in 2^40 ways
  GraphBuilder g;
  auto x = g.input(f32, {4});
  Term body = op(OpKind::Exp, {value("z")});
  for (int i = 0; i < 40; ++i) {
    x = g.op(OpKind::Add, {x, x = g.op(OpKind::Add, {x, g.input(f32, {4})})});
    body = body + body;
  }
  const Graph graph = g.finish();
  const int root = static_cast<int>(graph.ops().size()) - 1;
  const auto accept = [](const Match&) { return true; };
  EXPECT_EQ(match(graph, {"it", body}, root, accept), Outcome::given_up);
  EXPECT_EQ(match(graph, {"it", op(OpKind::Exp, {value("z")})}, root, accept), Outcome::none);
}

}  // namespace
}  // namespace lamina::testing
