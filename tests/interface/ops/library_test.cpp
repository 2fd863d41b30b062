// Shapes of the library ops: MatMul, convolutions, pools, resampling, batch normalisation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interface/shape_rules.h"
#include "support/op_builder.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;
using List = std::vector<int64_t>;

constexpr DataType f32 = DataType::f32;
constexpr DataType bf16 = DataType::bf16;
constexpr DataType f64 = DataType::f64;
constexpr DataType s32 = DataType::s32;

OpBuilder matmul(Dims src, Dims weights, bool transpose_a = false, bool transpose_b = false) {
  return an_op(OpKind::MatMul)
      .attr("transpose_a", transpose_a)
      .attr("transpose_b", transpose_b)
      .input("src", f32, std::move(src))
      .input("weights", f32, std::move(weights))
      .output("dst", f32);
}

TEST(MatMulSchema, FollowsNumPyRankRules) {
  EXPECT_EQ(shapes_of(matmul({2, 3}, {3, 4})).at("dst"), (Dims{2, 4}));
  EXPECT_EQ(shapes_of(matmul({3, 2}, {4, 3}, true, true)).at("dst"), (Dims{2, 4}));
  EXPECT_EQ(shapes_of(matmul({5, 1, 2, 3}, {7, 3, 4})).at("dst"), (Dims{5, 7, 2, 4}));
  EXPECT_EQ(shapes_of(matmul({3}, {3, 4})).at("dst"), (Dims{4}));
  EXPECT_EQ(shapes_of(matmul({2, 3}, {3})).at("dst"), (Dims{2}));
  EXPECT_EQ(shapes_of(matmul({3}, {3}, true, true)).at("dst"), (Dims{}));
  EXPECT_EQ(shapes_of(matmul({kUnknownDim, 3}, {3, 4})).at("dst"), (Dims{kUnknownDim, 4}));
}

TEST(MatMulSchema, InnerExtentsAgree) {
  EXPECT_THAT(error_of(matmul({2, 3}, {4, 5})),
              HasSubstr("src [2, 3] has 3 columns and weights [4, 5] 4 rows after the transposes"));
  EXPECT_THAT(error_of(matmul({2, 2, 3}, {3, 3, 4})), HasSubstr("do not broadcast"));
  EXPECT_THAT(error_of(matmul({}, {3})), HasSubstr("input src has shape [], allowed is rank 1 or more"));
}

TEST(MatMulSchema, TheBiasBroadcastsToTheResult) {
  EXPECT_EQ(error_of(matmul({2, 3}, {3, 4}).input("bias", f32, Dims{4})), "");
  EXPECT_EQ(error_of(matmul({2, 3}, {3, 4}).input("bias", f32, Dims{1, 1})), "");
  EXPECT_THAT(error_of(matmul({2, 3}, {3, 4}).input("bias", f32, Dims{3})), HasSubstr("one that broadcasts to [2, 4]"));
}

TEST(MatMulSchema, DstHasTheTypeOfSrcOrF32) {
  const auto error = [](DataType src, DataType dst) {
    return error_of(an_op(OpKind::MatMul).input("src", src).input("weights", src).output("dst", dst));
  };
  EXPECT_EQ(error(bf16, f32), "");
  EXPECT_EQ(error(bf16, bf16), "");
  EXPECT_EQ(error(f64, f64), "");
  EXPECT_THAT(error(f32, bf16), HasSubstr("allowed is the type of the input, or f32"));
  EXPECT_THAT(error(f64, f32), HasSubstr("f64"));
}

OpBuilder windowed(OpKind kind, const char* format = "NCX") {
  return an_op(kind)
      .attr("data_format", format)
      .attr("strides", List{2, 2})
      .attr("pads_begin", List{1, 1})
      .attr("pads_end", List{1, 1});
}

OpBuilder convolution(Dims src, Dims weights) {
  return windowed(OpKind::Convolution)
      .attr("dilations", List{1, 1})
      .attr("weights_format", "OIX")
      .input("src", f32, std::move(src))
      .input("weights", f32, std::move(weights))
      .output("dst", f32);
}

TEST(ConvolutionSchema, SpatialExtentsFollowTheWindow) {
  EXPECT_EQ(shapes_of(convolution({2, 3, 8, 9}, {6, 3, 3, 3})).at("dst"), (Dims{2, 6, 4, 5}));
  EXPECT_EQ(shapes_of(convolution({2, 3, 8, 9}, {6, 3, 3, 3}).attr("dilations", List{2, 2})).at("dst"), (Dims{2, 6, 3, 4}));
  EXPECT_EQ(shapes_of(convolution({kUnknownDim, 3, 8, kUnknownDim}, {6, 3, 3, 3})).at("dst"),
            (Dims{kUnknownDim, 6, 4, kUnknownDim}));
}

TEST(ConvolutionSchema, FormatsOrderTheAxes) {
  const auto op = windowed(OpKind::Convolution, "NXC")
                      .attr("dilations", List{1, 1})
                      .input("src", f32, Dims{2, 8, 9, 3})
                      .input("weights", f32, Dims{3, 3, 3, 6})
                      .output("dst", f32);
  EXPECT_EQ(shapes_of(op).at("dst"), (Dims{2, 4, 5, 6}));
}

TEST(ConvolutionSchema, GroupsSplitTheChannels) {
  EXPECT_EQ(shapes_of(convolution({2, 4, 8, 8}, {6, 2, 3, 3}).attr("groups", 2)).at("dst"), (Dims{2, 6, 4, 4}));
  EXPECT_THAT(error_of(convolution({2, 4, 8, 8}, {6, 4, 3, 3}).attr("groups", 2)),
              HasSubstr("input channels of weights are 4, allowed is 2"));
  EXPECT_THAT(error_of(convolution({2, 5, 8, 8}, {6, 2, 3, 3}).attr("groups", 2)),
              HasSubstr("allowed is a divisor of the 5 channels of src"));
}

TEST(ConvolutionSchema, AutoPadReplacesThePads) {
  const auto padded = [](const char* mode, int64_t extent) {
    return shapes_of(convolution({1, 3, extent, extent}, {6, 3, 3, 3}).attr("auto_pad", mode)).at("dst")[2];
  };
  EXPECT_EQ(padded("VALID", 8), 3);
  EXPECT_EQ(padded("SAME_UPPER", 8), 4);
  EXPECT_EQ(padded("SAME_LOWER", 9), 5);
}

TEST(ConvolutionSchema, SamePadsPutTheOddPixelAtOneEnd) {
  const auto pads = [](const char* mode) {
    const auto op = convolution({1, 3, 8, 8}, {6, 3, 3, 3}).attr("auto_pad", mode);
    return resolved_pads(op.view(), {8, 8}, {3, 3});
  };
  EXPECT_EQ(pads("SAME_UPPER").begin, (Dims{0, 0}));
  EXPECT_EQ(pads("SAME_UPPER").end, (Dims{1, 1}));
  EXPECT_EQ(pads("SAME_LOWER").begin, (Dims{1, 1}));
  EXPECT_EQ(pads("None").begin, (Dims{1, 1}));
}

TEST(ConvolutionSchema, BadWindowsAreRefused) {
  EXPECT_THAT(error_of(convolution({2, 3, 8, 9}, {6, 3, 3, 3}).attr("strides", List{0, 1})),
              HasSubstr("allowed is entries of 1 or more"));
  EXPECT_THAT(error_of(convolution({2, 3, 8, 9}, {6, 3, 3, 3}).attr("pads_end", List{-1, 1})),
              HasSubstr("allowed is entries of 0 or more"));
  EXPECT_THAT(error_of(convolution({2, 3, 8, 9}, {6, 3, 3, 3}).attr("strides", List{1})),
              HasSubstr("attribute strides has 1 entries, allowed is 2"));
  EXPECT_THAT(error_of(convolution({2, 3, 8, 9}, {6, 3, 3})), HasSubstr("weights have shape [6, 3, 3], allowed is rank 4"));
  EXPECT_THAT(error_of(convolution({2, 3, 2, 9}, {6, 3, 7, 3})), HasSubstr("allowed is at least 7, the extent of the window"));
  EXPECT_THAT(error_of(convolution({2, 3, 8, 9}, {6, 3, 3, 3}).input("bias", f32, Dims{3})),
              HasSubstr("input bias has shape [3], allowed is [6]"));
}

TEST(ConvolutionSchema, ExtentsThat64BitsCannotHoldAreRefused) {
  const List huge{INT64_MAX, INT64_MAX};
  for (const char* attribute : {"dilations", "pads_begin"})
    EXPECT_THAT(error_of(convolution({2, 3, 8, 9}, {6, 3, 3, 3}).attr(attribute, huge)), HasSubstr("does not fit 64 bits"));
  EXPECT_EQ(shapes_of(convolution({2, 3, 8, 9}, {6, 3, 3, 3}).attr("strides", huge)).at("dst"), (Dims{2, 6, 1, 1}));
}

OpBuilder backward_data(std::optional<Dims> diff_src) {
  return windowed(OpKind::ConvolutionBackwardData)
      .attr("dilations", List{1, 1})
      .attr("weights_format", "OIX")
      .input("diff_dst", f32, Dims{2, 6, 4, 4})
      .input("weights", f32, Dims{6, 3, 3, 3})
      .output("diff_src", f32, std::move(diff_src));
}

TEST(ConvolutionGradients, TheShapeIsGivenOrAnAttribute) {
  EXPECT_EQ(shapes_of(backward_data(Dims{2, 3, 8, 7})).at("diff_src"), (Dims{2, 3, 8, 7}));
  EXPECT_EQ(shapes_of(backward_data(std::nullopt).attr("dst_shape", List{2, 3, 8, 8})).at("diff_src"), (Dims{2, 3, 8, 8}));
  EXPECT_EQ(shapes_of(backward_data(std::nullopt)), Shapes{});
  EXPECT_THAT(error_of(backward_data(Dims{2, 3, 12, 8})), HasSubstr("that convolve to [6, 4]"));
  const auto weights = windowed(OpKind::ConvolutionBackwardWeights)
                           .attr("dilations", List{1, 1})
                           .attr("weights_format", "OIX")
                           .attr("weights_shape", List{6, 3, 3, 3})
                           .input("src", f32, Dims{2, 3, 8, 8})
                           .input("diff_dst", f32, Dims{2, 6, 4, 4})
                           .output("diff_weights", f32);
  EXPECT_EQ(shapes_of(weights).at("diff_weights"), (Dims{6, 3, 3, 3}));
}

TEST(ConvTransposeSchemas, SpatialExtentsGrow) {
  const auto op = windowed(OpKind::ConvTranspose)
                      .attr("dilations", List{1, 1})
                      .attr("weights_format", "IOX")
                      .input("src", f32, Dims{2, 4, 5, 5})
                      .input("weights", f32, Dims{4, 3, 3, 3})
                      .output("dst", f32);
  EXPECT_EQ(shapes_of(op).at("dst"), (Dims{2, 3, 9, 9}));
  EXPECT_EQ(shapes_of(OpBuilder(op).attr("output_padding", List{1, 0})).at("dst"), (Dims{2, 3, 10, 9}));
  EXPECT_EQ(shapes_of(OpBuilder(op).attr("groups", 2)).at("dst"), (Dims{2, 6, 9, 9}));
  const auto gradient = windowed(OpKind::ConvTransposeBackwardData)
                            .attr("dilations", List{1, 1})
                            .attr("weights_format", "IOX")
                            .input("diff_dst", f32, Dims{2, 3, 9, 9})
                            .input("weights", f32, Dims{4, 3, 3, 3})
                            .output("diff_src", f32);
  EXPECT_EQ(shapes_of(gradient).at("diff_src"), (Dims{2, 4, 5, 5}));
}

OpBuilder max_pool(Dims src) {
  return windowed(OpKind::MaxPool).attr("kernel", List{3, 3}).input("src", f32, std::move(src)).output("dst", f32);
}

TEST(PoolSchemas, ExtentsAreRoundedAsAsked) {
  EXPECT_EQ(shapes_of(max_pool({2, 3, 8, 8})).at("dst"), (Dims{2, 3, 4, 4}));
  EXPECT_EQ(shapes_of(max_pool({2, 3, 8, 8}).attr("rounding_type", "ceil")).at("dst"), (Dims{2, 3, 5, 5}));
  EXPECT_THAT(error_of(max_pool({2, 3, 8, 8}).attr("rounding_type", "up")), HasSubstr("allowed is \"floor\", \"ceil\""));
  EXPECT_THAT(error_of(max_pool({2, 3})), HasSubstr("allowed is rank 3 or more"));
  EXPECT_THAT(error_of(max_pool({2, 3, 8, 8}).attr("dilations", List{1})),
              HasSubstr("attribute dilations has 1 entries, allowed is 2"));
}

TEST(PoolSchemas, GradientsHaveTheShapeOfSrc) {
  const auto max = windowed(OpKind::MaxPoolBackward)
                       .attr("kernel", List{3, 3})
                       .input("src", f32, Dims{2, 3, 8, 8})
                       .input("diff_dst", f32, Dims{2, 3, 4, 4})
                       .output("diff_src", f32);
  EXPECT_EQ(shapes_of(max).at("diff_src"), (Dims{2, 3, 8, 8}));
  EXPECT_THAT(error_of(OpBuilder(max).without_input("diff_dst").input("diff_dst", f32, Dims{2, 3, 7, 7})),
              HasSubstr("allowed is [4, 4]"));
  const auto average = windowed(OpKind::AvgPoolBackward)
                           .attr("kernel", List{3, 3})
                           .attr("exclude_pad", true)
                           .attr("src_shape", List{2, 3, 8, 8})
                           .input("diff_dst", f32, Dims{2, 3, 4, 4})
                           .output("diff_src", f32);
  EXPECT_EQ(shapes_of(average).at("diff_src"), (Dims{2, 3, 8, 8}));
}

OpBuilder interpolate() {
  return an_op(OpKind::Interpolate)
      .attr("mode", "nearest")
      .attr("data_format", "NCX")
      .input("src", f32, Dims{2, 3, 4, 5})
      .output("dst", f32);
}

TEST(InterpolateSchemas, SizesOrScales) {
  EXPECT_EQ(shapes_of(interpolate().attr("sizes", List{8, 9})).at("dst"), (Dims{2, 3, 8, 9}));
  EXPECT_EQ(shapes_of(interpolate().floats("scales", {1.5F, 0.5F})).at("dst"), (Dims{2, 3, 6, 2}));
  EXPECT_EQ(shapes_of(interpolate().input("sizes", s32, Dims{2})).at("dst"), (Dims{2, 3, kUnknownDim, kUnknownDim}));
  EXPECT_THAT(error_of(interpolate()), HasSubstr("neither attribute sizes nor attribute scales is given"));
  EXPECT_THAT(error_of(interpolate().attr("sizes", List{8, 9}).floats("scales", {1, 1})), HasSubstr("both given"));
  EXPECT_THAT(error_of(interpolate().attr("sizes", List{8})), HasSubstr("attribute sizes has 1 entries, allowed is 2"));
  EXPECT_THAT(error_of(interpolate().floats("scales", {0, 1})), HasSubstr("positive finite factors"));
}

TEST(InterpolateSchemas, NothingIsMadeOfNoPixels) {
  OpBuilder op = an_op(OpKind::Interpolate);
  op.attr("mode", "nearest").attr("data_format", "NCX").input("src", f32, Dims{2, 3, 0, 5}).output("dst", f32);
  EXPECT_THAT(error_of(OpBuilder(op).attr("sizes", List{8, 9})),
              HasSubstr("attribute sizes has 8 for spatial axis 0, along which src has no pixels, allowed is 0"));
  EXPECT_EQ(shapes_of(OpBuilder(op).attr("sizes", List{0, 9})).at("dst"), (Dims{2, 3, 0, 9}));
}

TEST(BatchNormSchemas, StatisticsArePerChannel) {
  OpBuilder op(OpKind::BatchNormForwardTraining);
  op.attr("epsilon", 1e-5)
      .attr("data_format", "NCX")
      .input("src", f32, Dims{2, 3, 4, 4})
      .input("mean", f32, Dims{3})
      .input("variance", f32, Dims{3});
  for (const char* output : {"dst", "running_mean", "running_variance", "batch_mean", "batch_variance"}) op.output(output, f32);
  EXPECT_EQ(shapes_of(op).at("batch_variance"), (Dims{3}));
  EXPECT_THAT(error_of(OpBuilder(op).without_input("mean").input("mean", f32, Dims{4})),
              HasSubstr("input mean has shape [4], allowed is [3]"));
  EXPECT_THAT(error_of(OpBuilder(op).attr("momentum", 1.5)), HasSubstr("allowed is a number from 0 to 1"));
}

}  // namespace
}  // namespace lamina::testing
