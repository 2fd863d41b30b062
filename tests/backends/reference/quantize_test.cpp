// Conversions between floats and quantised types.
#include <limits>

#include "backends/reference/op_case.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
constexpr DataType f32 = DataType::f32;

Attribute floats(std::vector<float> values) { return values; }
Attribute integers(std::vector<int64_t> values) { return values; }

TEST(ReferenceQuantize, RoundsHalvesToEvenAndSaturates) {
  OpCase op(OpKind::Quantize);
  op.input({6}, {0.25, 0.75, 1.25, 1000, -1000, std::numeric_limits<double>::quiet_NaN()}, f32);
  op.attr("scales", floats({0.5F})).attr("zps", integers({10})).outputs({DataType::u8});
  // x / 0.5 + 10: 10.5, 11.5, 12.5, 2010, -1990
  EXPECT_THAT(op.result(), ElementsAre(10, 12, 12, 255, 0, 0));
  EXPECT_THAT(op.outputs({DataType::s8}).result(), ElementsAre(10, 12, 12, 127, -128, 0));
}

TEST(ReferenceQuantize, TakesAScaleAChannel) {
  OpCase op(OpKind::Quantize);
  op.input({2, 2}, {1, 1, 2, 2}, f32).attr("qtype", "per_channel").attr("axis", 1);
  op.attr("scales", floats({1.0F, 0.5F})).attr("zps", integers({0, 1})).outputs({DataType::s8});
  EXPECT_THAT(op.result(), ElementsAre(1, 3, 2, 5));
}

TEST(ReferenceQuantize, ToF8IsAConversion) {
  OpCase op(OpKind::Quantize);
  op.input({3}, {1, 1.0625, 0.9}, f32).attr("scales", floats({1.0F})).outputs({DataType::f8_e4m3});
  EXPECT_THAT(op.result(), ElementsAre(1, 1, 0.875));  // steps of 1/8 above 1, of 1/16 below
}

TEST(ReferenceDequantize, UndoesQuantize) {
  OpCase op(OpKind::Dequantize);
  op.input({2, 2}, {0, 10, 12, 255}, DataType::u8).attr("scales", floats({0.5F})).attr("zps", integers({10})).outputs({f32});
  EXPECT_THAT(op.result(), ElementsAre(-5, 0, 1, 122.5));
  OpCase channel(OpKind::Dequantize);
  channel.input({2, 2}, {1, 2, 3, 4}, DataType::s8).attr("qtype", "per_channel").attr("axis", -2);
  channel.attr("scales", floats({1.0F, 10.0F})).outputs({f32});
  EXPECT_THAT(channel.result(), ElementsAre(1, 2, 30, 40));
}

TEST(ReferenceDynamicQuantize, TakesScalesAsTensors) {
  OpCase quantize(OpKind::DynamicQuantize);
  quantize.input({2, 2}, {1, 1, 2, 2}, f32).input({2}, {1, 0.5}, f32).input({2}, {0, 1}, DataType::s32);
  quantize.attr("qtype", "per_channel").outputs({DataType::s8});
  EXPECT_THAT(quantize.result(), ElementsAre(1, 3, 2, 5));
  OpCase dequantize(OpKind::DynamicDequantize);
  dequantize.input({2}, {-3, 4}, DataType::s8).input({1}, {0.5}, f32).outputs({f32});
  EXPECT_THAT(dequantize.result(), ElementsAre(-1.5, 2));
}

TEST(ReferenceDynamicDequantize, HasOneEntryAGroup) {
  // src [4, 2] in groups of 2 x 1: scales [2, 2]
  OpCase op(OpKind::DynamicDequantize);
  op.input({4, 2}, {1, 1, 2, 2, 3, 3, 4, 4}, DataType::s8).input({2, 2}, {1, 10, 100, 1000}, f32);
  op.attr("qtype", "per_group").attr("group_shape", integers({2, 1})).outputs({f32});
  EXPECT_THAT(op.result(), ElementsAre(1, 10, 2, 20, 300, 3000, 400, 4000));
}

TEST(ReferenceTypeCast, CutsOffBehindThePoint) {
  OpCase op(OpKind::TypeCast);
  op.input({6}, {1.7, -1.7, 0.2, 1e30, -1e30, std::nan("")}).outputs({DataType::s32});
  EXPECT_THAT(op.result(), ElementsAre(1, -1, 0, INT32_MAX, INT32_MIN, 0));
  op.outputs({DataType::s64});
  EXPECT_EQ(op.run()[0].integers, (std::vector<int64_t>{1, -1, 0, INT64_MAX, INT64_MIN, 0}));
  op.outputs({DataType::boolean});
  EXPECT_THAT(op.result(), ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(ReferenceTypeCast, OfLongIntegers) {
  OpCase op(OpKind::TypeCast);
  op.integer((int64_t{1} << 32) + 5).outputs({DataType::s32});
  EXPECT_THAT(op.result(), ElementsAre(5));
  op.outputs({f32});
  EXPECT_THAT(op.result(), ElementsAre(4294967296.0));
}

// Through f64, both values would be rounded twice, to the even neighbour.
TEST(ReferenceTypeCast, OfLongIntegersRoundsOnce) {
  OpCase op(OpKind::TypeCast);
  op.integer((int64_t{1} << 62) + (int64_t{1} << 38) + 1).outputs({f32});
  EXPECT_THAT(op.result(), ElementsAre(0x1p62 + 0x1p39));
  OpCase to_half(OpKind::TypeCast);
  to_half.integer((int64_t{1} << 62) + (int64_t{1} << 54) + 1).outputs({DataType::bf16});
  EXPECT_THAT(to_half.result(), ElementsAre(0x1p62 + 0x1p55));
}

// Steps of 1/8 above 1, 2^-9 below 2^-6, and no infinity; ties to the even neighbour.
TEST(ReferenceTypeCast, ToE4m3) {
  OpCase op(OpKind::TypeCast);
  op.input({10}, {1.0625, 1.1875, -1.3, 463.9, 464, 0x1p-10, 3 * 0x1p-10, 0x1p-9, 7.5 * 0x1p-9, -0x1.8p-11}, f32);
  op.outputs({DataType::f8_e4m3});
  EXPECT_THAT(op.result(), ElementsAre(1, 1.25, -1.25, 448, 448, 0, 0x1p-8, 0x1p-9, 0x1p-6, 0));
  op.outputs({DataType::f8_e5m2});  // steps of 1/4, 2^-16 below 2^-14
  EXPECT_THAT(op.result(), ElementsAre(1, 1.25, -1.25, 448, 448, 0x1p-10, 3 * 0x1p-10, 0x1p-9, 0x1p-6, -0x1.8p-11));
}

TEST(ReferenceTypeCast, ToF8OutOfRange) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  OpCase op(OpKind::TypeCast);
  op.input({6}, {464.1, -1e9, inf, 61439, 61440, nan}, f32).outputs({DataType::f8_e4m3});
  expect_close(op.result(), {nan, nan, nan, nan, nan, nan});
  op.outputs({DataType::f8_e5m2});
  expect_close(op.result(), {448, -inf, inf, 57344, inf, nan});
}

TEST(ReferenceTypeCast, OfF8) {
  OpCase op(OpKind::TypeCast);
  op.input({5}, {-448, 0x1p-9, 1.875, -0.0, std::nan("")}, DataType::f8_e4m3).outputs({f32});
  expect_close(op.result(), {-448, 0x1p-9, 1.875, 0, std::nan("")});
  op.outputs({DataType::s32});
  EXPECT_THAT(op.result(), ElementsAre(-448, 0, 1, 0, 0));
}

// A long integer on the middle of two neighbours.
TEST(ReferenceTypeCast, OfIntegersToF8RoundsOnce) {
  OpCase op(OpKind::TypeCast);
  op.integer(17).outputs({DataType::f8_e4m3});
  EXPECT_THAT(op.result(), ElementsAre(16));  // the neighbours are 16 and 18
  OpCase next(OpKind::TypeCast);
  next.integer(19).outputs({DataType::f8_e4m3});
  EXPECT_THAT(next.result(), ElementsAre(20));
}

// Consumers of a cast read the rounded number.
TEST(ReferenceTypeCast, RoundsBeforeTheStore) {
  OpCase op(OpKind::TypeCast);
  op.input({1}, {1.0009765625}, f32).outputs({DataType::bf16});
  EXPECT_THAT(op.result(), ElementsAre(1.0));
}

}  // namespace
}  // namespace lamina::testing
