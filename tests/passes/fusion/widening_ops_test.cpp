// Ops that convert a value to a wider type are in the group that reads the result, and in each twin in that of the producer.
#include "passes/passes_test_support.h"

namespace lamina::testing {
namespace {

using ::testing::Contains;

const Attributes kScale{
    {"scales", std::vector<float>{0.1F}}, {"zps", std::vector<int64_t>{3}}, {"qtype", std::string("per_tensor")}};

// What reads the result of "wide" besides the product.
enum class Readers { add, add_and_caller, add_and_other_group, pool };

//   x ── quant ─┬─ other ── product ─┐
//               └─ wide ──────────── add
Graph residual(Readers readers, OpKind narrows = OpKind::Quantize, OpKind widens = OpKind::Dequantize,
               DataType narrow = DataType::u8) {
  GraphBuilder g;
  const Dims shape = readers == Readers::pool ? Dims{1, 4, 4, 8} : Dims{8, 8};
  const Attributes attributes = narrows == OpKind::Quantize ? kScale : Attributes{};
  const auto quant = g.named("quant").op(narrows, {g.input(f32, shape)}, attributes, narrow);
  const auto wide = g.named("wide").op(widens, {quant}, attributes, f32);
  const auto other = g.named("other").op(widens, {quant}, attributes, f32);
  if (readers == Readers::pool) {
    g.named("pool").op(OpKind::MaxPool, {wide},
                       {{"strides", Dims{2, 2}},
                        {"kernel", Dims{2, 2}},
                        {"pads_begin", Dims{0, 0}},
                        {"pads_end", Dims{0, 0}},
                        {"data_format", std::string("NXC")}});
    return g.finish();
  }
  const auto product = g.named("product").op(OpKind::MatMul, {other, g.input(f32, {8, 8})});
  const auto sum = g.named("add").op(OpKind::Add, {wide, product});
  if (readers == Readers::add_and_caller) g.output(wide);
  if (readers == Readers::add_and_other_group) {
    const auto second = g.named("product2").op(OpKind::MatMul, {sum, g.input(f32, {8, 8})});
    g.named("add2").op(OpKind::Multiply, {wide, second});
  }
  return g.finish();
}

TEST(WideningOps, AreWithTheOnlyReader) {
  const Graph graph = residual(Readers::add);
  EXPECT_EQ(fused(graph), "quant other | product | wide add");
  EXPECT_THAT(codes_of(graph, "wide"), Contains("alone.wider"));
  expect_sound(graph, groups_of(graph));
}

TEST(WideningOps, AreCastsToo) {
  EXPECT_EQ(fused(residual(Readers::add, OpKind::TypeCast, OpKind::TypeCast, DataType::bf16)),
            "quant other | product | wide add");
}

TEST(WideningOps, StayIfTheCallerReadsTheResult) {
  EXPECT_EQ(fused(residual(Readers::add_and_caller)), "quant wide other end2 | product | add");
}

TEST(WideningOps, StayIfSeveralGroupsReadTheResult) {
  EXPECT_EQ(fused(residual(Readers::add_and_other_group)), "quant wide other | product | add | product2 | add2");
}

TEST(WideningOps, StayIfTheReaderHasAWindow) { EXPECT_EQ(fused(residual(Readers::pool)), "quant wide other | pool"); }

TEST(WideningOps, StayIfTheResultIsNoWider) {
  EXPECT_EQ(fused(residual(Readers::add, OpKind::Abs, OpKind::Abs, DataType::f32)), "quant wide other | product | add");
}

}  // namespace
}  // namespace lamina::testing
