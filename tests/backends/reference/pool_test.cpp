// Pools: windows by hand, padding, rounding, and gradients by differences.
#include <limits>

#include "backends/reference/gradient_check.h"
#include "support/random_tensor.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32;
constexpr DataType s32 = DataType::s32;
const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

Attribute list(std::vector<int64_t> values) { return values; }

OpCase pool(OpKind kind, Dims kernel, Dims strides, Dims pads_begin, Dims pads_end) {
  OpCase op(kind);
  op.attr("kernel", list(std::move(kernel))).attr("strides", list(std::move(strides)));
  op.attr("pads_begin", list(std::move(pads_begin))).attr("pads_end", list(std::move(pads_end))).outputs({f32});
  return op;
}
OpCase average(OpKind kind, Dims kernel, Dims strides, Dims pads_begin, Dims pads_end, bool exclude_pad) {
  return pool(kind, std::move(kernel), std::move(strides), std::move(pads_begin), std::move(pads_end))
      .attr("exclude_pad", exclude_pad);
}

const Numbers kFive{1, 5, 3, 2, 4};

TEST(ReferenceMaxPool, TakesTheLargestOfAWindow) {
  OpCase op = pool(OpKind::MaxPool, {2}, {1}, {0}, {0});
  EXPECT_THAT(op.input({1, 5, 1}, kFive, f32).result(), ElementsAre(5, 5, 3, 4));
  OpCase strided = pool(OpKind::MaxPool, {2}, {2}, {1}, {0});
  EXPECT_THAT(strided.input({1, 5, 1}, kFive, f32).result(), ElementsAre(1, 5, 4));
  OpCase dilated = pool(OpKind::MaxPool, {2}, {1}, {0}, {0});
  EXPECT_THAT(dilated.input({1, 5, 1}, kFive, f32).attr("dilations", list({3})).result(), ElementsAre(2, 5));
}

TEST(ReferenceMaxPool, PaddingNeverWinsAndNanDoes) {
  OpCase op = pool(OpKind::MaxPool, {2}, {1}, {1}, {1});
  EXPECT_THAT(op.input({1, 2, 1}, {-3, -2}, f32).result(), ElementsAre(-3, -2, -2));
  OpCase with_nan = pool(OpKind::MaxPool, {2}, {1}, {0}, {0});
  expect_close(with_nan.input({1, 4, 1}, {kNaN, 1, 2, 3}, f32).result(), {kNaN, 2, 3});
}

TEST(ReferenceMaxPool, RoundsTheExtentAsItIsTold) {
  OpCase op = pool(OpKind::MaxPool, {2}, {2}, {0}, {0});
  op.input({1, 5, 1}, kFive, f32);
  EXPECT_THAT(op.result(), ElementsAre(5, 3));
  EXPECT_THAT(op.attr("rounding_type", "ceil").result(), ElementsAre(5, 3, 4));
}

TEST(ReferenceMaxPool, PadsAsAutoPadSays) {
  OpCase op = pool(OpKind::MaxPool, {2}, {1}, {7}, {7});
  op.input({1, 5, 1}, kFive, f32);
  EXPECT_THAT(op.attr("auto_pad", "SAME_UPPER").result(), ElementsAre(5, 5, 3, 4, 4));
  EXPECT_THAT(op.attr("auto_pad", "SAME_LOWER").result(), ElementsAre(1, 5, 5, 3, 4));
  EXPECT_THAT(op.attr("auto_pad", "VALID").result(), ElementsAre(5, 5, 3, 4));
}

TEST(ReferencePool, AWindowOfNothingGivesTheNeutralValue) {
  // src [1, 4, 1], window 1, stride 2, rounded up: the third window starts after the last pixel.
  OpCase largest = pool(OpKind::MaxPool, {1}, {2}, {0}, {0}), mean = average(OpKind::AvgPool, {1}, {2}, {0}, {0}, false);
  EXPECT_THAT(largest.input({1, 4, 1}, {1, 2, 3, 4}, f32).attr("rounding_type", "ceil").result(), ElementsAre(1, 3, -kInf));
  mean.input({1, 4, 1}, {1, 2, 3, 4}, f32).attr("rounding_type", "ceil");
  EXPECT_THAT(mean.result(), ElementsAre(1, 3, 0));
  expect_close(mean.attr("exclude_pad", true).result(), {1, 3, kNaN});
}

TEST(ReferenceAvgPool, DividesByTheWindowOrByThePixelsInside) {
  const auto averaged = [](bool exclude_pad) {
    OpCase op = average(OpKind::AvgPool, {2}, {1}, {1}, {1}, exclude_pad);
    return op.input({1, 2, 1}, {4, 8}, f32).result();
  };
  EXPECT_THAT(averaged(false), ElementsAre(2, 6, 4));
  EXPECT_THAT(averaged(true), ElementsAre(4, 6, 8));
}

TEST(ReferencePool, KeepsChannelsApartInEveryFormat) {
  // Two samples of two channels of 2 x 2 pixels; one window covers all pixels.
  const Numbers channels_second{1, 2, 3, 4, 10, 20, 30, 40, 5, 6, 7, 8, 50, 60, 70, 80};
  const Numbers channels_last{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60, 7, 70, 8, 80};
  OpCase ncx = average(OpKind::AvgPool, {2, 2}, {1, 1}, {0, 0}, {0, 0}, false), nxc = ncx;
  ncx.input({2, 2, 2, 2}, channels_second, f32).attr("data_format", "NCX");
  nxc.input({2, 2, 2, 2}, channels_last, f32);
  EXPECT_THAT(ncx.result(), ElementsAre(2.5, 25, 6.5, 65));
  EXPECT_THAT(nxc.result(), ElementsAre(2.5, 25, 6.5, 65));
}

// ---- gradients

TEST(ReferenceMaxPoolBackward, GoesToTheFirstMaximumOfAWindow) {
  OpCase op = pool(OpKind::MaxPoolBackward, {2}, {1}, {0}, {0});
  op.input({1, 4, 1}, {7, 7, 1, 7}, f32).input({1, 3, 1}, {1, 10, 100}, f32);
  EXPECT_THAT(op.result(), ElementsAre(1, 10, 0, 100));
}

TEST(ReferenceAvgPoolBackward, ChecksTheShapeThatItIsGivenAtRunTime) {
  OpCase op = average(OpKind::AvgPoolBackward, {2}, {2}, {0}, {0}, false);
  op.input({1, 2, 1}, {2, 4}, f32).input({3}, {1, 5, 1}, s32).output_shape({1, 5, 1});
  EXPECT_THAT(op.result(), ElementsAre(1, 1, 2, 2, 0));
  op.set(1, {1, 4, 1});
  try {
    op.run();
    FAIL() << "took another shape than it was compiled for";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("input src_shape holds [1, 4, 1], allowed is [1, 5, 1]"));
  }
}

// All numbers from 1 to `count`, shuffled: a window has no ties, and steps of 1/4 change no maximum.
Numbers shuffled(size_t count) {
  Numbers order = RandomTensor(5).uniform(count, 0, 1), ranks(count);
  for (size_t i = 0; i < count; ++i)
    ranks[i] = static_cast<double>(std::count_if(order.begin(), order.end(), [&](double x) { return x <= order[i]; }));
  return ranks;
}

TEST(ReferencePoolGradients, AgreeWithDifferences) {
  // src [2, 3, 5, 4] (NXC: 2 samples, 3 x 5 pixels, 4 channels), windows of 2 x 3 that overlap and reach into the padding
  const Dims src{2, 3, 5, 4}, kernel{2, 3}, strides{1, 2}, pads{1, 0};
  const Numbers x = shuffled(120);
  for (const char* rounding : {"floor", "ceil"}) {
    OpCase largest = pool(OpKind::MaxPool, kernel, strides, pads, {1, 1});
    largest.input(src, x, f32).attr("rounding_type", rounding).attr("dilations", list({1, 2}));
    const Dims dst = largest.run()[0].shape;
    const Numbers dy = shuffled(static_cast<size_t>(reference::count_of(dst, 0, 4)));
    OpCase largest_back = pool(OpKind::MaxPoolBackward, kernel, strides, pads, {1, 1});
    largest_back.input(src, x, f32).input(dst, dy, f32).attr("dilations", list({1, 2}));
    expect_close(largest_back.result(), exact_gradient(largest, 0, dy), 1e-9);
  }
  for (const bool exclude_pad : {false, true}) {
    OpCase mean = average(OpKind::AvgPool, kernel, strides, pads, {1, 1}, exclude_pad);
    const Dims dst = mean.input(src, x, f32).run()[0].shape;
    const Numbers dy = shuffled(static_cast<size_t>(reference::count_of(dst, 0, 4)));
    OpCase mean_back = average(OpKind::AvgPoolBackward, kernel, strides, pads, {1, 1}, exclude_pad);
    mean_back.input(dst, dy, f32).attr("src_shape", list(src));
    expect_close(mean_back.result(), exact_gradient(mean, 0, dy), 1e-9);
  }
}

TEST(ReferencePool, OfNoSamplesIsEmpty) {
  OpCase op = pool(OpKind::MaxPool, {2}, {1}, {0}, {0});
  EXPECT_TRUE(op.input({0, 5, 1}, {}, f32).result().empty());
}

}  // namespace
}  // namespace lamina::testing
