// Ops of two and three tensors, broadcasting, BiasAdd, PReLU.
#include <limits>
#include <numbers>

#include "backends/reference/gradient_check.h"
#include "support/random_tensor.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
constexpr DataType f64 = DataType::f64;
const double kNaN = std::numeric_limits<double>::quiet_NaN();

OpCase binary(OpKind kind, const Numbers& a, const Numbers& b) {
  OpCase op(kind);
  op.input({static_cast<int64_t>(a.size())}, a).input({static_cast<int64_t>(b.size())}, b);
  return op;
}

TEST(ReferenceBinary, Formulas) {
  EXPECT_THAT(binary(OpKind::Add, {1, -2}, {3, 5}).result(), ElementsAre(4, 3));
  EXPECT_THAT(binary(OpKind::Subtract, {1, -2}, {3, 5}).result(), ElementsAre(-2, -7));
  EXPECT_THAT(binary(OpKind::Multiply, {1, -2}, {3, 5}).result(), ElementsAre(3, -10));
  EXPECT_THAT(binary(OpKind::Divide, {1, -2}, {4, 5}).result(), ElementsAre(0.25, -0.4));
  EXPECT_THAT(binary(OpKind::Maximum, {1, -2}, {3, -5}).result(), ElementsAre(3, -2));
  EXPECT_THAT(binary(OpKind::Minimum, {1, -2}, {3, -5}).result(), ElementsAre(1, -5));
  EXPECT_THAT(binary(OpKind::SquaredDifference, {1, -2}, {3, 5}).result(), ElementsAre(4, 49));
}

TEST(ReferenceBinary, Atan2IsTheAngleOfAPoint) {
  const double quarter = std::numbers::pi / 2;
  expect_close(binary(OpKind::Atan2, {1, 1, 0, -1, kNaN}, {0, 1, -1, -1, 1}).result(),
               {quarter, quarter / 2, 2 * quarter, -1.5 * quarter, kNaN});
}

TEST(ReferenceBinary, FmodHasTheSignOfTheFirst) {
  expect_close(binary(OpKind::Fmod, {7, -7, 7, -7, 1e300, 5, 1}, {4, 4, -4, -4, 7, 0, kNaN}).result(),
               {3, -3, 3, -3, 1, kNaN, kNaN});
}

TEST(ReferenceBinary, NanWinsInMaximumAndMinimum) {
  for (const OpKind kind : {OpKind::Maximum, OpKind::Minimum})
    expect_close(binary(kind, {kNaN, 1}, {1, kNaN}).result(), {kNaN, kNaN});
}

TEST(ReferenceBinary, LongIntegersKeepTheirBitsAndWrapAround) {
  constexpr int64_t kLarge = (int64_t{1} << 53) + 1;
  const auto run = [](OpKind kind, int64_t a, int64_t b) {
    OpCase op(kind);
    op.integer(a).integer(b).outputs({DataType::s64});
    return op.run()[0].integers.at(0);
  };
  EXPECT_EQ(run(OpKind::Add, kLarge, 2), kLarge + 2);
  EXPECT_EQ(run(OpKind::Subtract, kLarge, 1), kLarge - 1);
  EXPECT_EQ(run(OpKind::Multiply, kLarge, 3), 3 * kLarge);
  EXPECT_EQ(run(OpKind::Add, INT64_MAX, 1), INT64_MIN);
}

double of_integers(DataType dtype, OpKind kind, double a, double b) {
  OpCase op(kind);
  op.input({1}, {a}, dtype).input({1}, {b}, dtype).outputs({dtype});
  return op.result().at(0);
}

TEST(ReferenceBinary, IntegersWrapAroundInTheirOwnType) {
  const auto run = of_integers;
  EXPECT_EQ(run(DataType::s32, OpKind::Add, 2147483647, 1), -2147483648.0);
  EXPECT_EQ(run(DataType::u16, OpKind::Multiply, 65535, 65535), 1);
  EXPECT_EQ(run(DataType::u32, OpKind::Subtract, 1, 3), 4294967294.0);
  EXPECT_EQ(run(DataType::u64, OpKind::Subtract, 0, 1), 0x1p64);
  EXPECT_EQ(run(DataType::u64, OpKind::Maximum, 0x1p63, 1), 0x1p63);
  EXPECT_EQ(run(DataType::u8, OpKind::Add, 200, 100), 44);
  EXPECT_EQ(run(DataType::s8, OpKind::Multiply, -128, -1), -128);
  EXPECT_EQ(run(DataType::s16, OpKind::Subtract, -32768, 1), 32767);
}

TEST(ReferenceBinary, QuotientsOfIntegersAreCutOff) {
  const auto quotient = [](DataType dtype, double a, double b) { return of_integers(dtype, OpKind::Divide, a, b); };
  EXPECT_EQ(quotient(DataType::s32, 7, 2), 3);
  EXPECT_EQ(quotient(DataType::s32, -7, 2), -3);
  EXPECT_EQ(quotient(DataType::u8, 255, 2), 127);
  EXPECT_EQ(quotient(DataType::s32, 7, 0), 0);
  EXPECT_EQ(quotient(DataType::u64, 0x1p63, 2), 0x1p62);
  EXPECT_EQ(quotient(DataType::s32, -2147483648.0, -1), -2147483648.0);
  EXPECT_EQ(quotient(DataType::s8, -128, -1), -128);
}

TEST(ReferenceBinary, BitsOfIntegers) {
  EXPECT_EQ(of_integers(DataType::u8, OpKind::BitwiseAnd, 0b1100, 0b1010), 0b1000);
  EXPECT_EQ(of_integers(DataType::s32, OpKind::BitwiseOr, -8, 5), -3);
  EXPECT_EQ(of_integers(DataType::s16, OpKind::BitwiseXor, -1, 0x5555), -21846);
  EXPECT_EQ(of_integers(DataType::u64, OpKind::BitwiseXor, 0x1p63, 0x1p62), 0x1p63 + 0x1p62);
}

TEST(ReferenceBinary, ShiftsOfIntegers) {
  EXPECT_EQ(of_integers(DataType::u8, OpKind::ShiftLeft, 129, 1), 2);
  EXPECT_EQ(of_integers(DataType::s32, OpKind::ShiftLeft, 1, 31), -2147483648.0);
  EXPECT_EQ(of_integers(DataType::u32, OpKind::ShiftRight, 4294967295.0, 28), 15);
  EXPECT_EQ(of_integers(DataType::s8, OpKind::ShiftRight, -128, 3), -16) << "the sign is kept";
  EXPECT_EQ(of_integers(DataType::s8, OpKind::ShiftRight, -1, 100), -1) << "all bits are moved out";
  EXPECT_EQ(of_integers(DataType::u16, OpKind::ShiftLeft, 1, 16), 0) << "all bits are moved out";
}

TEST(ReferenceBinary, Comparisons) {
  const auto run = [](OpKind kind) {
    OpCase op(kind);
    op.input({4}, {1, 2, 3, kNaN}).input({4}, {2, 2, 2, kNaN}).outputs({DataType::boolean});
    return op.result();
  };
  EXPECT_THAT(run(OpKind::Equal), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(run(OpKind::NotEqual), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(run(OpKind::Less), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(run(OpKind::LessEqual), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(run(OpKind::Greater), ElementsAre(0, 0, 1, 0));
  OpCase long_ones(OpKind::Equal);
  long_ones.integer((int64_t{1} << 53) + 1).integer(int64_t{1} << 53).outputs({DataType::boolean});
  EXPECT_THAT(long_ones.result(), ElementsAre(0)) << "in double they are the same";
}

TEST(ReferenceBinary, LogicTakesEveryByteButZeroForTrue) {
  const auto run = [](OpKind kind) {
    OpCase op(kind);
    op.input({4}, {0, 0, 1, 1}, DataType::boolean).input({4}, {0, 1, 0, 1}, DataType::boolean).outputs({DataType::boolean});
    return op.result();
  };
  EXPECT_THAT(run(OpKind::LogicalAnd), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(run(OpKind::LogicalOr), ElementsAre(0, 1, 1, 1));
  OpCase op(OpKind::LogicalNot);
  op.input({2}, {0, 1}, DataType::boolean).outputs({DataType::boolean});
  EXPECT_THAT(op.result(), ElementsAre(1, 0));
}

TEST(ReferenceBinary, GreaterEqualIsFalseForNan) {
  OpCase op(OpKind::GreaterEqual);
  const Numbers a{1, 2, 3, kNaN}, b{2, 2, 2, 2};
  op.input({4}, a, DataType::f32).input({4}, b, DataType::f32).outputs({DataType::boolean});
  EXPECT_THAT(op.result(), ElementsAre(0, 1, 1, 0));
}

TEST(ReferenceBinary, BroadcastsLikeNumpy) {
  // [2, 1, 2] + [3, 1] -> [2, 3, 2]
  OpCase op(OpKind::Add);
  op.input({2, 1, 2}, {1, 2, 3, 4}).input({3, 1}, {10, 20, 30});
  EXPECT_EQ(op.run()[0].shape, Dims({2, 3, 2}));
  EXPECT_THAT(op.result(), ElementsAre(11, 12, 21, 22, 31, 32, 13, 14, 23, 24, 33, 34));
  OpCase scalar(OpKind::Subtract);
  scalar.input({}, {1}).input({2}, {3, 4});
  EXPECT_THAT(scalar.result(), ElementsAre(-2, -3));
}

TEST(ReferenceBinary, BroadcastingToNoElementsGivesNone) {
  OpCase op(OpKind::Multiply);
  op.input({0, 2}, {}).input({1, 2}, {1, 2});
  EXPECT_TRUE(op.result().empty());
}

TEST(ReferenceSelect, BroadcastsAllThree) {
  OpCase op(OpKind::Select);
  op.input({2, 1}, {1, 0}, DataType::boolean).input({2, 2}, {1, 2, 3, 4}).input({1}, {9});
  EXPECT_THAT(op.result(), ElementsAre(1, 2, 9, 9));
  // The value that is not selected does not matter, even if it is NaN.
  OpCase masked(OpKind::Select);
  masked.input({2}, {1, 0}, DataType::boolean).input({2}, {1, kNaN}).input({2}, {kNaN, 2});
  EXPECT_THAT(masked.result(), ElementsAre(1, 2));
}

TEST(ReferenceBias, RunsAlongTheChannels) {
  OpCase nxc(OpKind::BiasAdd), ncx(OpKind::BiasAdd);
  nxc.input({1, 2, 2}, {0, 0, 1, 1}).input({2}, {10, 20});
  EXPECT_THAT(nxc.result(), ElementsAre(10, 20, 11, 21));
  ncx.input({1, 2, 2}, {0, 0, 1, 1}).input({2}, {10, 20}).attr("data_format", "NCX");
  EXPECT_THAT(ncx.result(), ElementsAre(10, 10, 21, 21));
}

TEST(ReferenceBias, BackwardAgreesWithFiniteDifferences) {
  RandomTensor random(5);
  const Dims shape{2, 3, 2, 2};
  const Numbers dy = random.uniform(24, -1, 1);
  for (const char* format : {"NCX", "NXC"}) {
    const int64_t channels = std::string(format) == "NCX" ? 3 : 2;
    OpCase forward(OpKind::BiasAdd), backward(OpKind::BiasAddBackward);
    forward.input(shape, random.uniform(24, -1, 1)).input({channels}, Numbers(static_cast<size_t>(channels), 0.5));
    forward.attr("data_format", format);
    backward.input(shape, dy).attr("data_format", format);
    expect_close(backward.result(), gradient_by_differences(forward, 1, dy), 1e-8);
  }
}

TEST(ReferencePrelu, SlopePerChannelOrBroadcast) {
  OpCase ncx(OpKind::PReLU), full(OpKind::PReLU);
  ncx.input({1, 2, 2}, {-1, 2, -3, 4}).input({2}, {0.5, 0.25}).attr("data_format", "NCX");
  EXPECT_THAT(ncx.result(), ElementsAre(-0.5, 2, -0.75, 4));
  full.input({1, 2, 2}, {-1, 2, -3, -4}).input({1, 2, 2}, {1, 2, 3, 4}).attr("per_channel_broadcast", false);
  EXPECT_THAT(full.result(), ElementsAre(-1, 2, -9, -16));
}

TEST(ReferencePrelu, BackwardAgreesWithFiniteDifferences) {
  RandomTensor random(9);
  const Dims shape{2, 3, 2};
  const Numbers src = random.uniform(12, -2, 2), dy = random.uniform(12, -1, 1);
  for (const Dims& slope_shape : {Dims{2}, Dims{1}}) {
    const Numbers slope = random.uniform(static_cast<size_t>(slope_shape[0]), 0.1, 0.9);
    OpCase forward(OpKind::PReLU), backward(OpKind::PReLUBackward);
    forward.input(shape, src).input(slope_shape, slope);
    backward.input(shape, src).input(slope_shape, slope).input(shape, dy).outputs({f64, f64});
    expect_close(backward.result(0), gradient_by_differences(forward, 0, dy), 1e-8);
    expect_close(backward.result(1), gradient_by_differences(forward, 1, dy), 1e-8);
  }
}

}  // namespace
}  // namespace lamina::testing
