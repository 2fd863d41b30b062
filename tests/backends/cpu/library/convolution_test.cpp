// The six convolution ops on the CPU backend: every form that their schemas allow, compared with the reference, with the same
// bits for any number of threads and images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "backends/cpu/library/library_check.h"
#include "support/convolution_graphs.h"

namespace lamina::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;

constexpr double kLongSums = 8e-6;  // error of sums of thousands of products in f32

void expect_all_kinds_match(ConvolutionCase c, double error = 3e-6) {
  for (const OpKind kind : kConvolutionKinds) {
    for (const bool channels_last : {true, false}) {
      for (const bool taps_first : {true, false}) {
        c.kind = kind;
        c.channels_last = channels_last;
        c.taps_first = taps_first;
        SCOPED_TRACE(join(name_of(kind), channels_last ? " NXC" : " NCX", taps_first ? ", taps first, " : ", taps last, ",
                          name_of(c.dtype)));
        expect_library_matches_reference(graph_of(c), error);
      }
    }
  }
}

// The primitive of a window of several taps, with the channels first.
const std::string& name_of_primitive() {
  static const std::string name =
      expect_library_matches_reference(graph_of({.src_channels = 32, .dst_channels = 32, .channels_last = false}), kLongSums)
          .info.kernels.front();
  return name;
}

// Without oneDNN, it is generated code.
bool is_by_onednn() { return !name_of_primitive().starts_with("convolution, "); }

// For some processors, oneDNN implements convolutions only by gemm.
bool has_direct_convolutions() { return is_by_onednn() && name_of_primitive().find("gemm") == std::string::npos; }

TEST(ConvolutionStep, TakesOddChannelsWithAndWithoutBias) {
  expect_all_kinds_match({.src_channels = 5, .dst_channels = 7});
  expect_all_kinds_match({.src_channels = 1, .dst_channels = 33, .has_bias = false});
  expect_all_kinds_match({.batch = 1,
                          .src_channels = 1,
                          .dst_channels = 1,
                          .space = {1, 1},
                          .kernel = {1, 1},
                          .pads_begin = {0, 0},
                          .pads_end = {0, 0}});
}

TEST(ConvolutionStep, StridesPadsAndDilatesEachAxisByItsOwn) {
  expect_all_kinds_match({.space = {11, 10}, .strides = {2, 3}, .pads_begin = {1, 0}, .pads_end = {0, 2}, .dilations = {2, 1}});
  expect_all_kinds_match({.kernel = {1, 1}, .strides = {2, 2}, .pads_begin = {0, 0}, .pads_end = {0, 0}});
}

// Some positions read only padding, and one image is smaller than the window.
TEST(ConvolutionStep, TakesPadsBeyondTheWindow) {
  expect_all_kinds_match({.pads_begin = {4, 0}, .pads_end = {5, 3}});
  for (const DataType dtype : {f32, bf16})
    expect_all_kinds_match({.space = {2, 1},
                            .kernel = {4, 3},
                            .strides = {1, 3},
                            .pads_begin = {2, 2},
                            .pads_end = {3, 2},
                            .output_padding = {2, 2},
                            .dtype = dtype});
}

// Fast code requires that the last window ends inside the image, so positions after the image are omitted.
TEST(ConvolutionStep, LeavesOutPositionsBehindTheImage) {
  ConvolutionCase c{.src_channels = 32,
                    .dst_channels = 32,
                    .space = {24, 24},
                    .strides = {2, 2},
                    .pads_begin = {0, 0},
                    .pads_end = {33, 33},
                    .has_bias = false};
  for (const OpKind kind : {OpKind::ConvTranspose, OpKind::ConvTransposeBackwardWeights}) {
    c.kind = kind;
    for (const bool channels_last : {true, false}) {
      c.channels_last = channels_last;
      const LibraryRun run = expect_library_matches_reference(graph_of(c), kLongSums);
      if (!has_direct_convolutions()) continue;
      EXPECT_THAT(run.info.kernels, ElementsAre(Not(HasSubstr("gemm"))));
    }
  }
}

TEST(ConvolutionStep, PadsAsAutoPadSays) {
  for (const char* auto_pad : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    SCOPED_TRACE(auto_pad);
    expect_all_kinds_match({.kernel = {4, 3}, .strides = {2, 2}, .auto_pad = auto_pad});
  }
}

TEST(ConvolutionStep, TakesGroups) {
  expect_all_kinds_match({.src_channels = 6, .dst_channels = 4, .groups = 2});
  expect_all_kinds_match({.src_channels = 64, .dst_channels = 32, .groups = 2});
  expect_all_kinds_match({.src_channels = 16, .dst_channels = 16, .groups = 16});
  expect_all_kinds_match({.src_channels = 10, .dst_channels = 10, .groups = 10, .strides = {2, 1}});
  expect_all_kinds_match({.src_channels = 8, .dst_channels = 16, .groups = 8});
}

TEST(ConvolutionStep, TakesOneToThreeSpatialAxes) {
  const ConvolutionCase line{
      .space = {17}, .kernel = {4}, .strides = {2}, .pads_begin = {3}, .pads_end = {0}, .dilations = {1}};
  expect_all_kinds_match(line);
  ConvolutionCase by_channel = line;
  by_channel.groups = 8;
  expect_all_kinds_match(by_channel);
  const ConvolutionCase block{.space = {5, 6, 7},
                              .kernel = {3, 2, 3},
                              .strides = {2, 1, 1},
                              .pads_begin = {1, 0, 1},
                              .pads_end = {0, 1, 1},
                              .dilations = {1, 1, 2}};
  expect_all_kinds_match(block);
  ConvolutionCase grouped = block;
  grouped.groups = 2;
  expect_all_kinds_match(grouped);
}

TEST(ConvolutionStep, AddsOutputPadding) {
  expect_all_kinds_match({.strides = {2, 2}, .output_padding = {1, 1}});
  // No window reaches the last rows and columns.
  expect_all_kinds_match({.pads_begin = {0, 0}, .pads_end = {0, 0}, .output_padding = {3, 2}});
}

TEST(ConvolutionStep, TakesTensorsWithGaps) {
  expect_all_kinds_match({.has_gaps = true});
  expect_all_kinds_match({.src_channels = 12, .dst_channels = 12, .groups = 3, .has_gaps = true});
  for (const DataType dtype : {bf16, f16}) expect_all_kinds_match({.dtype = dtype, .has_gaps = true});
}

TEST(ConvolutionStep, TakesSixteenBitTypes) {
  for (const DataType dtype : {bf16, f16}) {
    expect_all_kinds_match({.src_channels = 20, .dst_channels = 12, .dtype = dtype});
    expect_all_kinds_match({.src_channels = 32, .dst_channels = 32, .groups = 32, .dtype = dtype});
  }
}

TEST(ConvolutionStep, CutsLargeImagesIntoSlabs) {
  expect_all_kinds_match({.batch = 1, .src_channels = 32, .dst_channels = 40, .space = {40, 36}}, kLongSums);
  expect_all_kinds_match({.batch = 1,
                          .src_channels = 16,
                          .dst_channels = 24,
                          .space = {64, 40},
                          .kernel = {5, 3},
                          .strides = {3, 2},
                          .pads_begin = {2, 1},
                          .pads_end = {1, 0},
                          .output_padding = {2, 1}},
                         kLongSums);
  expect_all_kinds_match({.batch = 1,
                          .src_channels = 16,
                          .dst_channels = 24,
                          .space = {40, 24},
                          .pads_begin = {3, 2},
                          .pads_end = {1, 0},
                          .dilations = {3, 2},
                          .output_padding = {4, 0},
                          .has_gaps = true},
                         kLongSums);
  expect_all_kinds_match({.batch = 1,
                          .src_channels = 64,
                          .dst_channels = 64,
                          .groups = 64,
                          .space = {48, 40},
                          .kernel = {5, 5},
                          .pads_begin = {2, 2},
                          .pads_end = {2, 2}},
                         kLongSums);
  expect_all_kinds_match({.batch = 1,
                          .src_channels = 48,
                          .dst_channels = 64,
                          .space = {600},
                          .kernel = {3},
                          .strides = {1},
                          .pads_begin = {1},
                          .pads_end = {1},
                          .dilations = {2}},
                         kLongSums);
}

TEST(ConvolutionStep, CutsManyChannelsIntoSlices) {
  for (const bool has_gaps : {false, true})
    expect_all_kinds_match({.src_channels = 160, .dst_channels = 144, .space = {7, 7}, .has_gaps = has_gaps}, kLongSums);
}

TEST(ConvolutionStep, SumsGradientsOfWeightsInBlocksOfImages) {
  for (const OpKind kind : {OpKind::ConvolutionBackwardWeights, OpKind::ConvTransposeBackwardWeights}) {
    for (const int64_t batch : {12, 13}) {
      SCOPED_TRACE(join(name_of(kind), ", ", batch, " images"));
      ConvolutionCase c{.kind = kind, .batch = batch, .src_channels = 24, .dst_channels = 40, .space = {20, 20}};
      for (const DataType dtype : {f32, bf16}) {
        c.dtype = dtype;
        const LibraryRun run = expect_library_matches_reference(graph_of(c), kLongSums);
        if (!has_direct_convolutions()) continue;
        EXPECT_THAT(run.info.kernels, Contains(AllOf(HasSubstr("partial sums"), Not(HasSubstr(" 1 x 1 partial sums")))));
      }
    }
  }
}

// Each image alone gives the bits that it has in a batch.
LibraryRun expect_images_keep_their_bits(ConvolutionCase c) {
  const LibraryRun all = expect_library_matches_reference(graph_of(c), kLongSums);
  const int64_t batch = std::exchange(c.batch, 1);
  const Graph alone = graph_of(c);
  const auto part = [&](const LogicalTensor& tensor, const Buffer& data, int64_t image) {
    const auto bytes = bytes_of(tensor.dtype, tensor.element_count() / batch);
    return Buffer(data.begin() + image * bytes, data.begin() + (image + 1) * bytes);
  };
  for (int64_t image = 0; image < batch; ++image) {
    std::map<uint64_t, Buffer> given;
    for (size_t i = 0; i < all.inputs.size(); ++i) {
      const LogicalTensor& tensor = all.inputs[i];
      const Buffer& data = all.buffers.at(tensor.id);
      given[tensor.id] = i == 0 ? part(tensor, data, image) : data;
    }
    const LibraryRun one = expect_library_matches_reference(alone, kLongSums, given);
    const LogicalTensor& made = all.outputs[0];
    const Buffer expected = part(made, all.buffers.at(made.id), image);
    EXPECT_EQ(std::memcmp(one.buffers.at(made.id).data(), expected.data(), expected.size()), 0) << "image " << image;
  }
  return all;
}

TEST(ConvolutionStep, AnImagesBitsAreItsOwn) {
  for (const OpKind kind :
       {OpKind::Convolution, OpKind::ConvolutionBackwardData, OpKind::ConvTranspose, OpKind::ConvTransposeBackwardData}) {
    for (const DataType dtype : {f32, bf16}) {
      for (const bool channels_last : {true, false}) {
        SCOPED_TRACE(join(name_of(kind), " ", name_of(dtype), channels_last ? " NXC" : " NCX"));
        expect_images_keep_their_bits(
            {.kind = kind, .batch = 5, .src_channels = 12, .dst_channels = 20, .channels_last = channels_last, .dtype = dtype});
        for (const ConvolutionCase& large : {ConvolutionCase{.src_channels = 32, .dst_channels = 40, .space = {40, 36}},
                                             ConvolutionCase{.src_channels = 160, .dst_channels = 144, .space = {7, 7}}}) {
          ConvolutionCase c = large;
          c.kind = kind;
          c.channels_last = channels_last;
          c.dtype = dtype;
          const LibraryRun run = expect_images_keep_their_bits(c);
          if (!is_by_onednn()) continue;
          EXPECT_THAT(run.info.kernels, Contains(AnyOf(HasSubstr(" tiles an image"), StartsWith("dense convolution, "))));
        }
      }
    }
  }
}

// Convolutions of a few million operations are worth more than one thread. The last slab of 35 rows is smaller than the others;
// with their packed weights oneDNN had no fast code for it, and the image was one tile.
TEST(ConvolutionStep, SmallImagesAreCut) {
  if (!is_by_onednn()) GTEST_SKIP() << "built without oneDNN";
  for (const ConvolutionCase& c :
       {ConvolutionCase{.batch = 1, .src_channels = 16, .dst_channels = 16, .space = {28, 28}, .channels_last = false},
        ConvolutionCase{.batch = 1, .src_channels = 96, .dst_channels = 96, .space = {35, 35}, .channels_last = false}}) {
    const LibraryRun run = expect_library_matches_reference(graph_of(c), kLongSums);
    EXPECT_THAT(run.info.kernels, Contains(HasSubstr(" tiles an image"))) << c.src_channels << " channels";
  }
}

TEST(ConvolutionStep, ChannelsAloneAreVectors) {
  for (const OpKind kind : {OpKind::Convolution, OpKind::ConvTranspose}) {
    const ConvolutionCase c{
        .kind = kind, .batch = 1, .src_channels = 256, .dst_channels = 256, .groups = 256, .space = {14, 14}};
    const LibraryRun run = expect_library_matches_reference(graph_of(c), kLongSums);
    EXPECT_THAT(run.info.kernels, Contains(StartsWith("depthwise convolution, "))) << name_of(kind);
  }
}

// The last vector has some columns.
TEST(ConvolutionStep, ColumnsOfAChannelAreVectors) {
  for (const int64_t columns : {2, 4, 8}) {
    const ConvolutionCase usual{
        .batch = 2, .src_channels = 20, .dst_channels = 20 * columns, .groups = 20, .space = {9, 12}, .strides = {2, 2}};
    ConvolutionCase of_one_tap = usual;
    of_one_tap.kernel = {1, 1}, of_one_tap.pads_begin = {0, 0}, of_one_tap.pads_end = {0, 0};
    for (const ConvolutionCase& c : {usual, of_one_tap}) {
      const LibraryRun run = expect_library_matches_reference(graph_of(c), kLongSums);
      EXPECT_THAT(run.info.kernels, Contains(StartsWith("depthwise convolution, "))) << columns << " columns";
    }
  }
}

TEST(ConvolutionStep, FewChannelsGoAlongLines) {
  const ConvolutionCase c{.batch = 1, .src_channels = 3, .dst_channels = 32, .space = {28, 28}, .strides = {2, 2}};
  const LibraryRun run = expect_library_matches_reference(graph_of(c), kLongSums);
  EXPECT_THAT(run.info.kernels, Contains(StartsWith("convolution of few channels, ")));
}

// The last vector has 8 channels. Lines have tiles at both borders and, of 70 pixels, inside. Windows leave out lines, and all
// pixels of a tile.
TEST(ConvolutionStep, ManyChannelsGoAlongLines) {
  const ConvolutionCase usual{.src_channels = 20, .dst_channels = 40, .space = {9, 70}};
  ConvolutionCase wide = usual, strided = usual, without_bias = usual;
  wide.space = {8, 12}, wide.kernel = {3, 9}, wide.pads_begin = {4, 8}, wide.pads_end = {4, 8};
  strided.strides = {2, 3}, strided.dilations = {2, 1}, strided.pads_end = {0, 2};
  without_bias.has_bias = false;
  for (ConvolutionCase c : {usual, wide, strided, without_bias}) {
    expect_all_kinds_match(c, kLongSums);
    const LibraryRun run = expect_images_keep_their_bits(c);
    EXPECT_THAT(run.info.kernels, Contains(StartsWith("dense convolution, ")));
  }
}

// oneDNN has fast code for them in f32 only.
TEST(ConvolutionStep, SixteenBitImagesOfChannelsAloneWithStridesAreComputedInF32) {
  for (const OpKind kind : {OpKind::ConvolutionBackwardData, OpKind::ConvTranspose}) {
    for (const bool channels_last : {true, false}) {
      for (const DataType dtype : {bf16, f16}) {
        SCOPED_TRACE(join(name_of(kind), channels_last ? " NXC, " : " NCX, ", name_of(dtype)));
        const ConvolutionCase c{.kind = kind,
                                .src_channels = 40,
                                .dst_channels = 40,
                                .groups = 40,
                                .space = {20, 20},
                                .kernel = {3, 3},
                                .strides = {2, 2},
                                .pads_begin = {1, 1},
                                .pads_end = {1, 1},
                                .channels_last = channels_last,
                                .dtype = dtype};
        const LibraryRun run = expect_library_matches_reference(graph_of(c), kLongSums);
        EXPECT_THAT(run.info.kernels, Not(Contains(HasSubstr("strided"))));
      }
    }
  }
}

// Vectors with all channels and with some, lines that see the border of the image and others, windows with more rows of taps
// than registers, and with rows outside of the image. ConvTranspose has them too.
TEST(ConvolutionStep, WeightsOfChannelsAloneAreSumsOfTaps) {
  const auto alone = [](int64_t channels, Dims space, Dims kernel, Dims strides, Dims dilations) {
    const Dims pads{kernel[0] / 2 * dilations[0], kernel[1] / 2 * dilations[1]};
    return ConvolutionCase{.batch = 3,
                           .src_channels = channels,
                           .dst_channels = channels,
                           .groups = channels,
                           .space = std::move(space),
                           .kernel = std::move(kernel),
                           .strides = std::move(strides),
                           .pads_begin = pads,
                           .pads_end = pads,
                           .dilations = std::move(dilations),
                           .has_bias = false};
  };
  for (ConvolutionCase c : {alone(144, {40, 37}, {3, 3}, {1, 1}, {1, 1}), alone(40, {6, 5}, {5, 5}, {1, 1}, {1, 1}),
                            alone(83, {9, 30}, {7, 7}, {2, 1}, {1, 1}), alone(24, {3, 12}, {3, 5}, {1, 2}, {2, 2}),
                            alone(17, {4, 3}, {1, 1}, {1, 1}, {1, 1})}) {
    for (const OpKind kind : {OpKind::ConvolutionBackwardWeights, OpKind::ConvTransposeBackwardWeights}) {
      for (const bool channels_last : {true, false}) {
        for (const DataType dtype : {f32, bf16, DataType::f64}) {
          c.kind = kind, c.channels_last = channels_last, c.dtype = dtype;
          SCOPED_TRACE(join(name_of(kind), channels_last ? " NXC, " : " NCX, ", c.src_channels, " channels, ", name_of(dtype)));
          const LibraryRun run = expect_library_matches_reference(graph_of(c), kLongSums);
          EXPECT_THAT(run.info.kernels, Contains(StartsWith("depthwise weight gradient, ")));
        }
      }
    }
  }
}

// Generated code takes many times as long.
TEST(ConvolutionStep, GradientsInGroupsOfFewChannelsAreOneDnns) {
  if (!is_by_onednn()) GTEST_SKIP() << "built without oneDNN";
  for (const OpKind kind :
       {OpKind::ConvolutionBackwardData, OpKind::ConvolutionBackwardWeights, OpKind::ConvTransposeBackwardWeights}) {
    const ConvolutionCase c{.kind = kind, .src_channels = 20, .dst_channels = 20, .groups = 5};
    const LibraryRun run = expect_library_matches_reference(graph_of(c), kLongSums);
    EXPECT_THAT(run.info.kernels, Not(Contains(StartsWith("convolution, ")))) << name_of(kind);
  }
}

// Constant weights are packed once, before the first execution.
TEST(ConvolutionStep, ConstantWeightsGiveTheSameBits) {
  for (const OpKind kind :
       {OpKind::Convolution, OpKind::ConvolutionBackwardData, OpKind::ConvTranspose, OpKind::ConvTransposeBackwardData}) {
    for (const int64_t groups : {1, 4}) {
      SCOPED_TRACE(join(name_of(kind), ", groups ", groups));
      const ConvolutionCase c{.kind = kind, .src_channels = 160, .dst_channels = 72, .groups = groups};
      const LibraryRun given = expect_library_matches_reference(graph_of(c), kLongSums);
      GraphBuilder g;
      const uint64_t made = add_op(g, c);
      g.tensor(given.inputs[1].id).property = PropertyType::constant;
      const LibraryRun constant = expect_library_matches_reference(g.finish(), kLongSums);
      EXPECT_TRUE(constant.buffers.at(made) == given.buffers.at(made));
    }
  }
}

// oneDNN has neither.
TEST(ConvolutionStep, TakesFourSpatialAxesAndDoubles) {
  expect_all_kinds_match({.space = {3, 4, 3, 5},
                          .kernel = {1, 2, 1, 3},
                          .strides = {1, 1, 1, 2},
                          .pads_begin = {0, 1, 0, 0},
                          .pads_end = {0, 0, 0, 1},
                          .dilations = {1, 1, 1, 1}});
  expect_all_kinds_match({.src_channels = 12, .dst_channels = 20, .dtype = DataType::f64}, 1e-13);
}

}  // namespace
}  // namespace lamina::testing
