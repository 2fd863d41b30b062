// Convolutions: small sums by hand, the adjoint pair, formats compared with each other, and gradients by differences.
#include "backends/reference/gradient_check.h"
#include "support/random_tensor.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32;
constexpr DataType s32 = DataType::s32;

Attribute list(std::vector<int64_t> values) { return values; }

// Adds the attributes that every convolution needs; one spatial axis unless a test sets more.
OpCase convolution(OpKind kind, Dims strides = {1}, Dims pads_begin = {0}, Dims pads_end = {0}, Dims dilations = {1}) {
  OpCase op(kind);
  op.attr("strides", list(std::move(strides))).attr("pads_begin", list(std::move(pads_begin)));
  op.attr("pads_end", list(std::move(pads_end))).attr("dilations", list(std::move(dilations))).outputs({f32});
  return op;
}

const Numbers kDigits{1, 10, 100};

TEST(ReferenceConvolution, SlidesItsWindow) {
  OpCase op = convolution(OpKind::Convolution, {1}, {1}, {1});
  op.input({1, 4, 1}, {1, 2, 3, 4}, f32).input({3, 1, 1}, kDigits, f32);
  EXPECT_THAT(op.result(), ElementsAre(210, 321, 432, 43));
  EXPECT_EQ(op.run()[0].shape, Dims({1, 4, 1}));
}

TEST(ReferenceConvolution, StridesAndDilates) {
  OpCase op = convolution(OpKind::Convolution, {2}, {0}, {0}, {2});
  op.input({1, 6, 1}, {1, 2, 3, 4, 5, 6}, f32).input({2, 1, 1}, {1, 10}, f32);
  EXPECT_THAT(op.result(), ElementsAre(31, 53));
}

TEST(ReferenceConvolution, PadsAsAutoPadSays) {
  const auto padded = [](const char* how) {
    OpCase op = convolution(OpKind::Convolution, {1}, {5}, {5});
    op.input({1, 4, 1}, {1, 2, 3, 4}, f32).input({2, 1, 1}, {1, 10}, f32).attr("auto_pad", how);
    return op.result();
  };
  EXPECT_THAT(padded("SAME_UPPER"), ElementsAre(21, 32, 43, 4));
  EXPECT_THAT(padded("SAME_LOWER"), ElementsAre(10, 21, 32, 43));
  EXPECT_THAT(padded("VALID"), ElementsAre(21, 32, 43));
}

TEST(ReferenceConvolution, SumsChannelsOfTheGroupAndAddsTheBias) {
  // Two groups of two input channels and one output channel; weights [O = 2, I = 2, X = 1].
  OpCase op = convolution(OpKind::Convolution);
  op.input({1, 4, 2}, {1, 2, 10, 20, 100, 200, 1000, 2000}, f32)
      .input({2, 2, 1}, {1, 2, 3, 4}, f32)
      .input({2}, {0.5, 0.25}, f32);
  op.attr("groups", 2).attr("data_format", "NCX").attr("weights_format", "OIX");
  EXPECT_THAT(op.result(), ElementsAre(21.5, 42.5, 4300.25, 8600.25));
}

TEST(ReferenceConvTranspose, SpreadsEachPixelOverItsWindow) {
  const auto transposed = [](Dims pads, std::vector<int64_t> extra) {
    OpCase op = convolution(OpKind::ConvTranspose, {2}, pads, pads);
    op.input({1, 2, 1}, {1, 2}, f32).input({3, 1, 1}, kDigits, f32).attr("output_padding", list(std::move(extra)));
    return op.result();
  };
  EXPECT_THAT(transposed({0}, {0}), ElementsAre(1, 10, 102, 20, 200));
  EXPECT_THAT(transposed({1}, {0}), ElementsAre(10, 102, 20));
  EXPECT_THAT(transposed({1}, {1}), ElementsAre(10, 102, 20, 200));
}

TEST(ReferenceConvTranspose, SumsChannelsOfTheGroupAndAddsTheBias) {
  // Two groups of one input channel and two output channels; weights [I = 2, O = 2, X = 1].
  OpCase op = convolution(OpKind::ConvTranspose);
  op.input({1, 2, 1}, {1, 10}, f32).input({2, 2, 1}, {1, 2, 3, 4}, f32).input({4}, {0, 0, 0, 0.5}, f32);
  op.attr("groups", 2).attr("data_format", "NCX").attr("weights_format", "IOX");
  EXPECT_THAT(op.result(), ElementsAre(1, 2, 30, 40.5));
}

// ---- any rank: [2, 4 channels, spatial] with two groups, strides, pads and dilations that differ by axis

struct Geometry {
  size_t rank;
  Dims first(Dims values) const { return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank)}; }
  Dims spatial() const { return first({5, 4, 3}); }
  Dims kernel() const { return first({2, 3, 2}); }
  OpCase op(OpKind kind) const {
    OpCase result = convolution(kind, first({2, 1, 1}), first({1, 1, 0}), first({0, 1, 1}), first({2, 1, 1}));
    result.attr("groups", 2);
    return result;
  }
};

Dims joined(Dims front, const Dims& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

int64_t count(const Dims& shape) { return reference::count_of(shape, 0, shape.size()); }

// Values are multiples of 1/8: sums of their products are exact.
Numbers eighths(const Dims& shape, unsigned seed) {
  Numbers values = RandomTensor(seed).uniform(static_cast<size_t>(count(shape)), -16, 16);
  for (double& value : values) value = std::floor(value) / 8;
  return values;
}

// A tensor with permuted dims: dim i of the result is dim order[i].
struct Permuted {
  Dims shape;
  Numbers values;
};
Permuted permute(const Dims& shape, const Numbers& values, const std::vector<int64_t>& order) {
  OpCase op(OpKind::StaticTranspose);
  op.input(shape, values, f32).attr("order", list(order)).outputs({f32});
  const reference::Tensor result = op.run()[0];
  return {result.shape, result.values};
}

std::vector<int64_t> axes(int64_t begin, int64_t end) {
  std::vector<int64_t> result;
  for (int64_t axis = begin; axis < end; ++axis) result.push_back(axis);
  return result;
}
// Orders that turn NCX into NXC and OIX (IOX) into XIO (XOI), and back.
std::vector<int64_t> channels_last(size_t rank) { return joined(joined({0}, axes(2, static_cast<int64_t>(rank) + 2)), {1}); }
std::vector<int64_t> channels_second(size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  return joined({0, r + 1}, axes(1, r + 1));
}
std::vector<int64_t> taps_first(size_t rank) { return joined(axes(2, static_cast<int64_t>(rank) + 2), {1, 0}); }

class ReferenceConvolutions : public ::testing::TestWithParam<size_t> {
 protected:
  const Geometry geometry_{GetParam()};
  // A convolution from 4 to 6 channels, and the transpose with the same weights.
  const Dims wide_ = joined({2, 4}, geometry_.spatial()), weights_ = joined({6, 2}, geometry_.kernel());
  const Numbers x_ = eighths(wide_, 1), w_ = eighths(weights_, 2);
  OpCase forward() const {
    OpCase op = geometry_.op(OpKind::Convolution);
    op.input(wide_, x_, f32).input(weights_, w_, f32).attr("data_format", "NCX").attr("weights_format", "OIX");
    return op;
  }
  const Dims narrow_ = forward().run()[0].shape;
  const Numbers y_ = eighths(narrow_, 3);
  OpCase transposed() const {
    OpCase op = geometry_.op(OpKind::ConvTranspose);
    op.input(narrow_, y_, f32).input(weights_, w_, f32).attr("data_format", "NCX").attr("weights_format", "IOX");
    Dims extra = wide_;  // the window does not reach the last positions
    OpCase plain = op;
    const Dims reached = plain.run()[0].shape;
    for (size_t i = 0; i < extra.size(); ++i) extra[i] -= reached[i];
    op.attr("output_padding", list(Dims(extra.begin() + 2, extra.end())));
    return op;
  }
};

TEST_P(ReferenceConvolutions, TheTransposeIsTheAdjoint) {
  // <convolution(x), y> = <x, transpose(y)>
  EXPECT_EQ(transposed().run()[0].shape, wide_);
  EXPECT_EQ(weighted_sum(forward().result(), y_), weighted_sum(x_, transposed().result()));
}

TEST_P(ReferenceConvolutions, FormatsMeanTheSame) {
  const Permuted x = permute(wide_, x_, channels_last(GetParam())), y = permute(narrow_, y_, channels_last(GetParam()));
  const Permuted w = permute(weights_, w_, taps_first(GetParam()));
  OpCase conv = geometry_.op(OpKind::Convolution);
  const reference::Tensor dst = conv.input(x.shape, x.values, f32).input(w.shape, w.values, f32).run()[0];
  EXPECT_EQ(permute(dst.shape, dst.values, channels_second(GetParam())).values, forward().result());
  // XIO of the convolution has its axes where XOI of the transpose has them: both hold [X, 2, 6].
  OpCase back = transposed();
  back.set_input(0, y.shape, y.values).set_input(1, w.shape, w.values);
  const reference::Tensor image = back.attr("data_format", "NXC").attr("weights_format", "XOI").run()[0];
  EXPECT_EQ(permute(image.shape, image.values, channels_second(GetParam())).values, transposed().result());
}

TEST_P(ReferenceConvolutions, DataGradientsAgreeWithDifferences) {
  OpCase data = geometry_.op(OpKind::ConvolutionBackwardData);
  data.input(narrow_, y_, f32).input(weights_, w_, f32).attr("data_format", "NCX").attr("weights_format", "OIX");
  EXPECT_EQ(data.output_shape(wide_).result(), exact_gradient(forward(), 0, y_));
  OpCase back = geometry_.op(OpKind::ConvTransposeBackwardData);
  back.input(wide_, x_, f32).input(weights_, w_, f32).attr("data_format", "NCX").attr("weights_format", "IOX");
  EXPECT_EQ(back.result(), exact_gradient(transposed(), 0, x_));
}

TEST_P(ReferenceConvolutions, WeightGradientsAgreeWithDifferences) {
  OpCase weights = geometry_.op(OpKind::ConvolutionBackwardWeights);
  weights.input(wide_, x_, f32).input(narrow_, y_, f32).attr("data_format", "NCX").attr("weights_format", "OIX");
  EXPECT_EQ(weights.output_shape(weights_).result(), exact_gradient(forward(), 1, y_));
  OpCase back = geometry_.op(OpKind::ConvTransposeBackwardWeights);
  back.input(narrow_, y_, f32).input(wide_, x_, f32).attr("data_format", "NCX").attr("weights_format", "IOX");
  EXPECT_EQ(back.attr("weights_shape", list(weights_)).result(), exact_gradient(transposed(), 1, x_));
}

TEST_P(ReferenceConvolutions, WeightGradientsKnowTheirFormats) {
  const Permuted x = permute(wide_, x_, channels_last(GetParam())), y = permute(narrow_, y_, channels_last(GetParam()));
  const Permuted w = permute(weights_, exact_gradient(forward(), 1, y_), taps_first(GetParam()));
  OpCase op = geometry_.op(OpKind::ConvolutionBackwardWeights);
  EXPECT_EQ(op.input(x.shape, x.values, f32).input(y.shape, y.values, f32).output_shape(w.shape).result(), w.values);
  const Permuted v = permute(weights_, exact_gradient(transposed(), 1, x_), taps_first(GetParam()));
  OpCase back = geometry_.op(OpKind::ConvTransposeBackwardWeights);
  EXPECT_EQ(back.input(y.shape, y.values, f32).input(x.shape, x.values, f32).output_shape(v.shape).result(), v.values);
}

INSTANTIATE_TEST_SUITE_P(SpatialRanks, ReferenceConvolutions, ::testing::Values(1U, 2U, 3U));

// ---- shapes given at run time, and empty tensors

TEST(ReferenceConvolutionGradients, CheckTheShapesThatTheyAreGivenAtRunTime) {
  OpCase op = convolution(OpKind::ConvolutionBackwardData);
  op.input({1, 3, 1}, {1, 2, 3}, f32).input({2, 1, 1}, {1, 10}, f32).input({3}, {1, 4, 1}, s32).output_shape({1, 4, 1});
  EXPECT_THAT(op.result(), ElementsAre(1, 12, 23, 30));
  op.set(2, {1, 5, 1});
  try {
    op.run();
    FAIL() << "took another shape than it was compiled for";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("input dst_shape holds [1, 5, 1], allowed is [1, 4, 1]"));
  }
  OpCase weights = convolution(OpKind::ConvolutionBackwardWeights);
  weights.input({1, 3, 1}, {1, 2, 3}, f32).input({1, 2, 1}, {1, 10}, f32).input({3}, {2, 1, 1}, s32).output_shape({2, 1, 1});
  EXPECT_THAT(weights.result(), ElementsAre(21, 32));
}

TEST(ReferenceConvolutionGradients, SumsOverNoSamplesAreZero) {
  OpCase op = convolution(OpKind::ConvolutionBackwardWeights);
  op.input({0, 3, 1}, {}, f32).input({0, 2, 1}, {}, f32).output_shape({2, 1, 1});
  EXPECT_THAT(op.result(), ElementsAre(0, 0));
  OpCase empty = convolution(OpKind::Convolution);
  EXPECT_TRUE(empty.input({0, 3, 1}, {}, f32).input({2, 1, 1}, {1, 1}, f32).result().empty());
}

TEST(ReferenceConvolution, ReadsStridedTensors) {
  OpCase op = convolution(OpKind::Convolution, {1}, {1}, {1});
  op.input({1, 4, 1}, {1, 2, 3, 4}, f32, {40, 3, 1}).input({3, 1, 1}, kDigits, f32, {7, 5, 2});
  EXPECT_THAT(op.result(), ElementsAre(210, 321, 432, 43));
}

}  // namespace
}  // namespace lamina::testing
