// Convolutions of dequantised integers run exactly on the integers if their scales can be factored out of the sum; otherwise
// the integers are dequantised first. Padding is the number 0, which the zero point represents among the integers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "backends/cpu/library/image_check.h"
#include "backends/cpu/library/library_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, u8 = DataType::u8, s8 = DataType::s8;

struct Case {
  OpKind kind = OpKind::Convolution;
  int64_t batch = 2, src_channels = 16, dst_channels = 24, groups = 1;
  Dims space{9, 8}, kernel{3, 3}, strides{1, 1}, pads_begin{1, 1}, pads_end{1, 1}, dilations{1, 1};
  bool channels_last = true, taps_first = true, has_bias = false, by_channel = false, is_constant = false;
  DataType src = u8, weights = s8, dtype = f32;
  int64_t zero_point = 3, weights_zero_point = 0;
};

bool is_transposed(const Case& c) { return c.kind == OpKind::ConvTranspose; }

// Axes of weights: output channels (all, or those of one group), and input channels likewise.
Dims weights_shape(const Case& c) {
  const int64_t in = is_transposed(c) ? c.src_channels : c.src_channels / c.groups;
  const int64_t out = is_transposed(c) ? c.dst_channels / c.groups : c.dst_channels;
  const bool input_first = is_transposed(c) != c.taps_first;  // XIO and IOX
  Dims shape = c.kernel;
  shape.insert(c.taps_first ? shape.end() : shape.begin(), {input_first ? in : out, input_first ? out : in});
  return shape;
}

int64_t axis_made(const Case& c) {
  const auto rank = static_cast<int64_t>(c.kernel.size()) + 2;
  if (!is_transposed(c)) return c.taps_first ? rank - 1 : 0;
  return c.taps_first ? rank - 2 : 1;
}

std::vector<float> ramp(size_t count) {
  std::vector<float> scales(count);
  for (size_t i = 0; i < count; ++i) scales[i] = 0.01f + 0.003f * static_cast<float>(i % 17);
  return scales;
}

uint64_t dequantized(GraphBuilder& g, uint64_t source, const std::vector<float>& scales, int64_t zero_point, int64_t axis,
                     DataType as) {
  const uint64_t value = g.op(OpKind::Dequantize, {source},
                              {{"scales", scales},
                               {"zps", std::vector<int64_t>(scales.size(), zero_point)},
                               {"qtype", std::string(scales.size() > 1 ? "per_channel" : "per_tensor")},
                               {"axis", axis}},
                              f32);
  return as == f32 ? value : g.op(OpKind::TypeCast, {value}, {}, as);
}

std::string format_of(const Case& c) { return c.channels_last ? "NXC" : "NCX"; }

uint64_t convolution(GraphBuilder& g, const Case& c) {
  const Dims src_shape = image_shape(format_of(c), c.batch, c.src_channels, c.space), shape = weights_shape(c);
  const uint64_t src = dequantized(g, g.input(c.src, src_shape), {0.1f}, c.zero_point, 1, c.dtype);
  const uint64_t integers = c.is_constant ? g.constant(c.weights, shape) : g.input(c.weights, shape);
  const std::vector<float> scales = c.by_channel ? ramp(static_cast<size_t>(c.dst_channels)) : std::vector<float>{0.05f};
  const uint64_t weights = dequantized(g, integers, scales, c.weights_zero_point, axis_made(c), c.dtype);
  const uint64_t bias = c.has_bias ? g.input(c.dtype, {c.dst_channels}) : kNoTensor;
  const std::string formats = is_transposed(c) ? "XOIIOX" : "XIOOIX";
  return g.op(c.kind, {src, weights, bias},
              {{"strides", c.strides},
               {"pads_begin", c.pads_begin},
               {"pads_end", c.pads_end},
               {"dilations", c.dilations},
               {"groups", c.groups},
               {"data_format", format_of(c)},
               {"weights_format", formats.substr(c.taps_first ? 0 : 3, 3)}});
}

Graph graph_of(const Case& c) {
  GraphBuilder g;
  convolution(g, c);
  return g.finish();
}

bool convolves_integers() {
  Op op;
  op.kind = OpKind::Convolution;
  return cpu_backend().plan_target()->library->takes_integers(op);
}

// Generated convolutions have none yet.
bool applies_post_ops() {
  Op op, relu;
  op.kind = OpKind::Convolution, relu.kind = OpKind::ReLU;
  return convolves_integers() && cpu_backend().plan_target()->library->takes_post_op(op, relu).has_value();
}

void expect_integers(const Case& c, double error = 2e-6) {
  // The reference rounds factors that are cast to 16 bits, and so does a convolution that does not run on the integers.
  const double rounding = c.dtype == bf16 ? 2e-2 : convolves_integers() ? 0 : 2e-5;
  const LibraryRun run = expect_library_matches_reference(graph_of(c), error + rounding);
  if (!convolves_integers()) return;
  EXPECT_THAT(run.info.kernels, Not(Contains(HasSubstr("dequantize"))));
}

// Tests every layout, with and without optional inputs.
void expect_integers_in_all_forms(Case c) {
  for (const bool channels_last : {true, false}) {
    for (const bool taps_first : {true, false}) {
      for (const DataType src : {u8, s8}) {
        SCOPED_TRACE(join(channels_last ? "NXC " : "NCX ", taps_first ? "taps first " : "taps last ", name_of(src)));
        c.channels_last = channels_last, c.taps_first = taps_first, c.src = src;
        c.has_bias = channels_last == taps_first;
        expect_integers(c);
      }
    }
  }
}

TEST(QuantizedConvolution, TakesTheIntegers) {
  expect_integers_in_all_forms({});
  expect_integers_in_all_forms({.by_channel = true});
  expect_integers_in_all_forms({.is_constant = true});
}

TEST(QuantizedConvolution, PadsAreZeroPoints) {
  for (const int64_t zero_point : {0, 1, 127, 128, 255})
    expect_integers({.pads_begin = {2, 0}, .pads_end = {1, 2}, .zero_point = zero_point});
  for (const int64_t zero_point : {-128, -1, 127}) {
    expect_integers({.pads_begin = {2, 2}, .pads_end = {2, 2}, .src = s8, .zero_point = zero_point});
    expect_integers({.strides = {2, 3}, .pads_begin = {4, 4}, .pads_end = {4, 4}, .src = s8, .zero_point = zero_point});
  }
  // Windows that read only padding.
  expect_integers({.space = {3, 3}, .kernel = {2, 2}, .pads_begin = {3, 3}, .pads_end = {4, 4}, .zero_point = 200});
}

TEST(QuantizedConvolution, WithDilations) {
  expect_integers_in_all_forms({.pads_begin = {2, 2}, .pads_end = {2, 2}, .dilations = {2, 2}, .zero_point = 100});
  expect_integers({.strides = {2, 2}, .pads_begin = {2, 0}, .pads_end = {0, 3}, .dilations = {3, 2}, .zero_point = 9});
}

TEST(QuantizedConvolution, InGroups) {
  expect_integers_in_all_forms({.src_channels = 16, .dst_channels = 24, .groups = 4, .by_channel = true});
  expect_integers_in_all_forms({.src_channels = 9, .dst_channels = 15, .groups = 3});
  expect_integers_in_all_forms({.src_channels = 32, .dst_channels = 32, .groups = 32, .by_channel = true});  // depthwise
  expect_integers_in_all_forms({.src_channels = 3, .dst_channels = 24, .groups = 3, .zero_point = 77});
}

TEST(QuantizedConvolution, AlongAnyAxes) {
  expect_integers({.space = {40}, .kernel = {5}, .strides = {1}, .pads_begin = {2}, .pads_end = {2}, .dilations = {1}});
  expect_integers({.space = {5, 6, 7},
                   .kernel = {3, 2, 3},
                   .strides = {1, 1, 2},
                   .pads_begin = {1, 1, 1},
                   .pads_end = {1, 0, 1},
                   .dilations = {1, 1, 1},
                   .zero_point = 130});
}

TEST(QuantizedConvolution, OfAnySize) {
  for (const int64_t in : {1, 3, 17, 64})
    for (const int64_t out : {1, 5, 33, 100})
      expect_integers({.src_channels = in, .dst_channels = out, .has_bias = true, .by_channel = true});
  // Several slabs and slices.
  expect_integers({.batch = 1,
                   .src_channels = 64,
                   .dst_channels = 320,
                   .space = {60, 50},
                   .by_channel = true,
                   .src = s8,
                   .zero_point = -5});
  expect_integers({.src_channels = 3,
                   .dst_channels = 64,
                   .space = {100, 90},
                   .kernel = {7, 7},
                   .strides = {2, 2},
                   .pads_begin = {3, 3},
                   .pads_end = {3, 3},
                   .channels_last = false,
                   .zero_point = 2});
  expect_integers({.src_channels = 64,
                   .dst_channels = 64,
                   .space = {50, 56},
                   .kernel = {1, 1},
                   .pads_begin = {0, 0},
                   .pads_end = {0, 0},
                   .channels_last = false});
}

TEST(QuantizedConvolution, Transposed) {
  expect_integers_in_all_forms({.kind = OpKind::ConvTranspose});
  expect_integers_in_all_forms({.kind = OpKind::ConvTranspose, .strides = {2, 2}, .by_channel = true, .zero_point = 100});
  expect_integers({.kind = OpKind::ConvTranspose, .groups = 4, .strides = {2, 1}, .zero_point = 128});
  expect_integers({.kind = OpKind::ConvTranspose, .src_channels = 64, .dst_channels = 64, .space = {60, 50}, .zero_point = 30});
}

TEST(QuantizedConvolution, MayBeCastBetween) {
  expect_integers({.by_channel = true, .dtype = bf16}, 1e-3);
  expect_integers({.has_bias = true, .dtype = bf16}, 1e-3);
}

// Each image alone has the bits that it has in a batch with the same weights.
void expect_images_alone(const std::function<Graph(int64_t images)>& graph_of) {
  constexpr int64_t kImages = 3;
  const LibraryRun all = expect_library_matches_reference(graph_of(kImages), 1e-3);
  for (int64_t image = 0; image < kImages; ++image) {
    std::map<uint64_t, Buffer> given;
    const Graph alone = graph_of(1);
    for (const ValueIndex v : alone.inputs()) {
      const LogicalTensor& tensor = alone.tensor(v);
      const auto whole =
          std::find_if(all.inputs.begin(), all.inputs.end(), [&](const LogicalTensor& t) { return t.id == tensor.id; });
      const Buffer& data = all.buffers.at(tensor.id);
      given[tensor.id] = whole->shape == tensor.shape ? data : image_of(*whole, data, image);
    }
    const LibraryRun run = expect_library_matches_reference(alone, 1e-3, given);
    const LogicalTensor& made = all.outputs[0];
    EXPECT_TRUE(run.buffers.at(made.id) == image_of(made, all.buffers.at(made.id), image)) << "image " << image;
  }
}

TEST(QuantizedConvolution, ImagesDoNotSeeEachOther) {
  expect_images_alone([](int64_t images) { return graph_of({.batch = images, .has_bias = true, .zero_point = 50}); });
}

TEST(QuantizedConvolution, OfNothing) {
  expect_integers({.batch = 0});
  expect_integers({.src_channels = 0});
}

// Sums of the largest numbers: kernels that saturate intermediate sums must not be used.
TEST(QuantizedConvolution, OfTheLargestNumbers) {
  for (const DataType src : {u8, s8}) {
    const Graph graph = graph_of({.src_channels = 64, .src = src, .zero_point = 0});
    std::map<uint64_t, Buffer> given;
    for (const ValueIndex v : graph.inputs()) {
      const LogicalTensor& tensor = graph.tensor(v);
      const double largest = tensor.dtype == u8 ? 255 : given.empty() ? -128 : 127;
      given[tensor.id] = buffer_of(tensor, std::vector<double>(static_cast<size_t>(tensor.element_count()), largest));
    }
    expect_library_matches_reference(graph, convolves_integers() ? 1e-6 : 2e-5, given);
  }
}

TEST(QuantizedConvolution, OthersAreDequantized) {
  for (const Case& c : {Case{.weights = u8}, Case{.weights_zero_point = 5}, Case{.dtype = DataType::f64}}) {
    const LibraryRun run = expect_library_matches_reference(graph_of(c), 2e-5);
    EXPECT_THAT(run.info.kernels, Contains(HasSubstr("dequantize")));
  }
}

// ---- epilogues

// Runs a graph around a convolution; `behind(g, dst)` adds the consumers of its result.
LibraryRun run_with(const Case& c, const std::function<void(GraphBuilder&, uint64_t)>& behind, double error) {
  GraphBuilder g;
  behind(g, convolution(g, c));
  const Graph graph = g.finish();
  return expect_library_matches_reference(graph, convolves_integers() ? error : std::max(error, 3e-2));
}

void expect_one_step(const Case& c, const std::function<void(GraphBuilder&, uint64_t)>& behind, double error = 4e-6) {
  const LibraryRun run = run_with(c, behind, error);
  if (!applies_post_ops()) return;
  EXPECT_EQ(run.info.kernels.size(), 1u) << ::testing::PrintToString(run.info.kernels);
  EXPECT_THAT(run.info.kernels, Not(Contains(HasSubstr("ref"))));
}

uint64_t quantized(GraphBuilder& g, uint64_t value, DataType as, float scale, int64_t zero_point) {
  return g.op(
      OpKind::Quantize, {value},
      {{"scales", std::vector<float>{scale}}, {"zps", std::vector<int64_t>{zero_point}}, {"qtype", std::string("per_tensor")}},
      as);
}

TEST(QuantizedConvolution, TakesWhatFollowsElementByElement) {
  for (const bool channels_last : {true, false}) {
    Case c{.channels_last = channels_last, .by_channel = true};
    for (const auto& [kind, attributes] :
         std::vector<std::pair<OpKind, Attributes>>{{OpKind::Abs, {}},
                                                    {OpKind::Clamp, {{"min", -0.5f}, {"max", 3.f}}},
                                                    {OpKind::Elu, {{"alpha", 0.7f}}},
                                                    {OpKind::GELU, {}},
                                                    {OpKind::GELU, {{"mode", std::string("gelu_tanh")}}},
                                                    {OpKind::HardSigmoid, {{"alpha", 0.2f}, {"beta", 0.4f}}},
                                                    {OpKind::HardSwish, {}},
                                                    {OpKind::LeakyReLU, {{"alpha", 0.1f}}},
                                                    {OpKind::Mish, {}},
                                                    {OpKind::ReLU, {}},
                                                    {OpKind::Sigmoid, {}},
                                                    {OpKind::Square, {}},
                                                    {OpKind::Swish, {{"alpha", 1.5f}}},
                                                    {OpKind::Tanh, {}}}) {
      SCOPED_TRACE(name_of(kind));
      expect_one_step(c, [&](GraphBuilder& g, uint64_t dst) { g.op(kind, {dst}, attributes); });
    }
  }
}

// The result of Quantize may differ by one near the middle between two integers.
TEST(QuantizedConvolution, IsQuantizedAgain) {
  for (const DataType as : {u8, s8}) {
    for (const int64_t zero_point : {0, 5, 127}) {
      for (const float scale : {0.5f, 0.013f, 1.f}) {  // the second one saturates
        const LibraryRun run = run_with(
            {.has_bias = true, .zero_point = 20},
            [&](GraphBuilder& g, uint64_t dst) { quantized(g, g.op(OpKind::ReLU, {dst}), as, scale, zero_point); }, 0.02);
        if (!applies_post_ops()) continue;
        EXPECT_THAT(run.info.kernels, ElementsAre(HasSubstr(", then ReLU, Quantize")));
      }
    }
  }
}

// ONNX rounds before it adds the zero point, which differs from Quantize if that is odd.
TEST(QuantizedConvolution, IsRoundedBeforeAZeroPointIsAdded) {
  for (const Case& c : {Case{.has_bias = true, .zero_point = 20}, Case{.src_channels = 24, .groups = 24}}) {
    const LibraryRun run = run_with(
        c,
        [](GraphBuilder& g, uint64_t dst) {
          const uint64_t steps = g.op(OpKind::Round, {g.op(OpKind::Divide, {dst, g.input(f32, {1, 1, 1, 1})})});
          quantized(g, g.op(OpKind::Add, {steps, dequantized(g, g.input(u8, {1, 1, 1, 1}), {1.f}, 0, 1, f32)}), u8, 1, 0);
        },
        0.02);
    if (!applies_post_ops()) continue;
    EXPECT_THAT(run.info.kernels, ElementsAre(HasSubstr(", then Divide, Round, Add, Quantize")));
  }
}

TEST(QuantizedConvolution, TakesOperandsOfAnyExtent) {
  for (const bool channels_last : {true, false}) {
    for (const OpKind kind : {OpKind::Add, OpKind::Multiply, OpKind::Subtract}) {
      const Case c{.channels_last = channels_last};
      const std::string format = format_of(c);
      for (const Dims& shape :
           {image_shape(format, 2, 24, {9, 8}), image_shape(format, 1, 24, {9, 8}), image_shape(format, 2, 24, {1, 1}),
            image_shape(format, 1, 24, {1, 1}), image_shape(format, 2, 1, {1, 1}), Dims{1}}) {
        SCOPED_TRACE(join(name_of(kind), " ", describe(shape)));
        expect_one_step(c, [&](GraphBuilder& g, uint64_t dst) { g.op(kind, {dst, g.input(f32, shape)}); });
      }
    }
  }
  expect_one_step({.channels_last = false}, [](GraphBuilder& g, uint64_t dst) {
    g.op(OpKind::BiasAdd, {dst, g.input(f32, {24})}, {{"data_format", std::string("NCX")}});
  });
}

TEST(QuantizedConvolution, TakesOperandsThatAreDequantizedThemselves) {
  for (const int64_t zero_point : {0, 9}) {
    for (const DataType type : {u8, s8}) {
      for (const bool channels_last : {true, false}) {
        const Case c{.batch = 1, .src_channels = 64, .dst_channels = 64, .space = {60, 50}, .channels_last = channels_last};
        expect_one_step(c, [&](GraphBuilder& g, uint64_t dst) {
          const uint64_t other = g.input(type, image_shape(format_of(c), 1, 64, {60, 50}));
          g.op(OpKind::Add, {dequantized(g, other, {0.3f}, zero_point, 1, f32), dst});
        });
      }
    }
  }
  expect_one_step({}, [&](GraphBuilder& g, uint64_t dst) {
    g.op(OpKind::Multiply, {dst, dequantized(g, g.input(s8, {2, 9, 8, 24}), {0.3f}, 0, 1, f32)});
  });
}

// A sum over no channels is 0, or the bias; the epilogue applies to it.
TEST(QuantizedConvolution, OfNothingWithWhatFollows) {
  run_with({.src_channels = 0}, [](GraphBuilder& g, uint64_t dst) { quantized(g, dst, u8, 0.5f, 7); }, 0);
  run_with({.batch = 0}, [](GraphBuilder& g, uint64_t dst) { quantized(g, dst, u8, 0.5f, 7); }, 0);
}

// Consumers that cannot be an epilogue, since another op reads the value or the shape differs, become separate kernels.
TEST(QuantizedConvolution, LeavesTheRestToKernels) {
  const auto expect_kernels = [](const std::function<void(GraphBuilder&, uint64_t)>& behind) {
    const LibraryRun run = run_with({}, behind, 1e-5);
    EXPECT_GT(run.info.kernels.size(), 1u);
  };
  expect_kernels([](GraphBuilder& g, uint64_t dst) {
    g.op(OpKind::ReLU, {dst});
    g.op(OpKind::Abs, {dst});
  });
  expect_kernels([](GraphBuilder& g, uint64_t dst) { g.op(OpKind::Add, {dst, g.input(f32, {2, 9, 1, 1})}); });
  expect_kernels([](GraphBuilder& g, uint64_t dst) { g.op(OpKind::SoftMax, {dst}, {{"axis", int64_t{-1}}}); });
}

// oneDNN's maximum of NaN and 0 is 0, lamina's is NaN: a NaN in the bias must remain NaN.
TEST(QuantizedConvolution, KeepsNaN) {
  GraphBuilder g;
  g.op(OpKind::ReLU, {convolution(g, {.has_bias = true})});
  const Graph graph = g.finish();
  std::map<uint64_t, Buffer> given;
  for (const ValueIndex v : graph.inputs()) {
    const LogicalTensor& tensor = graph.tensor(v);
    if (tensor.dtype != f32) continue;
    std::vector<double> values(static_cast<size_t>(tensor.element_count()), 1);
    values[3] = std::numeric_limits<double>::quiet_NaN();
    given[tensor.id] = buffer_of(tensor, values);
  }
  expect_library_matches_reference(graph, 2e-2, given);
}

TEST(QuantizedConvolution, ImagesWithWhatFollowsDoNotSeeEachOther) {
  expect_images_alone([](int64_t images) {
    const Case c{.batch = images, .src_channels = 32, .dst_channels = 96, .space = {30, 20}, .channels_last = false};
    GraphBuilder g;
    const uint64_t dst = g.op(OpKind::GELU, {convolution(g, c)});
    g.op(OpKind::Add, {dst, g.input(f32, image_shape("NCX", images, 96, {30, 20}))});
    return g.finish();
  });
}

}  // namespace
}  // namespace lamina::testing
