// A product or convolution gets its own Dequantize if other ops read the numbers, too.
#include "passes/repeat_dequantize.h"

#include "passes/verify_graph.h"
#include "passes_test_support.h"

namespace lamina::testing {
namespace {

const Attributes kScale{{"scales", std::vector<float>{0.1F}}, {"qtype", std::string("per_tensor")}};

// x ── Dequantize ─┬─ MatMul
//                  └─ Add          if `is_shared`
Graph product(bool is_shared, bool casts) {
  GraphBuilder g;
  const auto x = g.input(u8, {4, 8}), w = g.input(s8, {8, 8});
  auto a = g.op(OpKind::Dequantize, {x}, kScale, f32);
  if (casts) a = g.op(OpKind::TypeCast, {a}, {}, bf16);
  auto b = g.op(OpKind::Dequantize, {w}, kScale, f32);
  if (casts) b = g.op(OpKind::TypeCast, {b}, {}, bf16);
  const auto made = g.op(OpKind::MatMul, {a, b});
  if (is_shared) g.op(OpKind::Add, {made, a});
  return g.finish();
}

std::string kinds_after(const Graph& graph) {
  const auto repeated = repeat_dequantize(graph);
  if (!repeated) return "as it was";
  verify_graph(*repeated, "repeat_dequantize");
  std::string kinds;
  for (const Op& op : repeated->ops()) {
    check_op(OpView(*repeated, op));
    kinds += (kinds.empty() ? "" : " ") + std::string(name_of(op.kind));
  }
  return kinds;
}

TEST(RepeatDequantize, ForAProductWhoseFactorOthersRead) {
  EXPECT_EQ(kinds_after(product(true, false)), "Dequantize Dequantize Dequantize MatMul Add");
  EXPECT_EQ(kinds_after(product(true, true)), "Dequantize TypeCast Dequantize TypeCast Dequantize TypeCast MatMul Add");
}

TEST(RepeatDequantize, NotForTheOnlyReader) {
  EXPECT_EQ(kinds_after(product(false, false)), "as it was");
  EXPECT_EQ(kinds_after(product(false, true)), "as it was");
}

// The last reader keeps the op. The user's op is listed once.
TEST(RepeatDequantize, ForEachProduct) {
  GraphBuilder g;
  const auto x = g.op(OpKind::Dequantize, {g.input(u8, {4, 8})}, kScale, f32);
  for (int i = 0; i < 2; ++i) g.op(OpKind::MatMul, {x, g.input(f32, {8, 8})});
  const Graph graph = g.finish();
  EXPECT_EQ(kinds_after(graph), "Dequantize Dequantize MatMul MatMul");
  const auto repeated = std::make_shared<const Graph>(*repeat_dequantize(graph));
  Partition all;
  all.graph = repeated;
  for (size_t i = 0; i < repeated->ops().size(); ++i) all.ops.push_back(static_cast<int>(i));
  EXPECT_EQ(op_ids(all).size(), 3U);
}

// The first product's cast reads a copy.
TEST(RepeatDequantize, InFrontOfACast) {
  GraphBuilder g;
  const auto x = g.op(OpKind::Dequantize, {g.input(u8, {4, 8})}, kScale, f32);
  g.op(OpKind::MatMul, {g.op(OpKind::TypeCast, {x}, {}, bf16), g.input(bf16, {8, 8})});
  g.op(OpKind::ReLU, {x});
  EXPECT_EQ(kinds_after(g.finish()), "Dequantize Dequantize TypeCast MatMul ReLU");
}

TEST(RepeatDequantize, NotForElementwiseOps) {
  GraphBuilder g;
  const auto x = g.op(OpKind::Dequantize, {g.input(u8, {4, 8})}, kScale, f32);
  g.op(OpKind::Add, {x, g.op(OpKind::ReLU, {x})});
  EXPECT_EQ(kinds_after(g.finish()), "as it was");
}

}  // namespace
}  // namespace lamina::testing
