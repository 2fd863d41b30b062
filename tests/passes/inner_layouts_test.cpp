// Values between convolutions and pools become channels-last if all their producers and consumers accept it.
#include "passes/inner_layouts.h"

#include "passes_test_support.h"

namespace lamina::testing {
namespace {

const Dims kImage{2, 8, 5, 6}, kChannelsLast{240, 1, 48, 8}, kInOrder{240, 30, 6, 1};

class InnerLayouts : public ::testing::Test {
 protected:
  GraphBuilder g;
  uint64_t x = g.input(f32, kImage);

  uint64_t convolve(uint64_t src, const std::string& format = "NCX") {
    const uint64_t weights = g.input(f32, {8, 8, 3, 3});
    return convolve_with(src, weights, format);
  }
  uint64_t convolve_with(uint64_t src, uint64_t weights, const std::string& format = "NCX") {
    const Dims ones{1, 1};
    return g.op(OpKind::Convolution, {src, weights},
                {{"strides", ones},
                 {"dilations", ones},
                 {"pads_begin", ones},
                 {"pads_end", ones},
                 {"data_format", format},
                 {"weights_format", std::string("OIX")}});
  }
  uint64_t pool(uint64_t src) {
    const Dims ones{1, 1}, three{3, 3};
    return g.op(
        OpKind::MaxPool, {src},
        {{"kernel", three}, {"strides", ones}, {"pads_begin", ones}, {"pads_end", ones}, {"data_format", std::string("NCX")}});
  }
  // Returns the strides of the values after the pass.
  std::vector<Dims> strides_of(const std::vector<uint64_t>& values) {
    Graph graph = with_strides(g.finish());
    put_inner_channels_last(graph, graph.outputs());
    std::vector<Dims> strides;
    for (const uint64_t value : values) strides.push_back(graph.tensor(*graph.find_value(value)).strides);
    return strides;
  }
};

TEST_F(InnerLayouts, BetweenConvolutionsAndPoolsChannelsAreLast) {
  const auto a = convolve(x), b = pool(a), c = convolve(b);
  EXPECT_EQ(strides_of({x, a, b, c}), (std::vector<Dims>{kInOrder, kChannelsLast, kChannelsLast, kInOrder}));
}

TEST_F(InnerLayouts, ElementwiseOpsBetweenThemGoAlong) {
  const auto a = convolve(x), bias = g.input(f32, {8}),
             b = g.op(OpKind::BiasAdd, {a, bias}, {{"data_format", std::string("NCX")}}),
             c = g.op(OpKind::Add, {g.op(OpKind::ReLU, {b}), a}), d = convolve(c);
  EXPECT_EQ(strides_of({a, b, c, d}), (std::vector<Dims>{kChannelsLast, kChannelsLast, kChannelsLast, kInOrder}));
}

// The value would be reordered for the user's tensor anyway.
TEST_F(InnerLayouts, WhatMeetsAUsersTensorStaysInOrder) {
  const auto a = convolve(x), b = g.op(OpKind::Add, {a, x}), c = convolve(b), d = g.op(OpKind::ReLU, {c});
  EXPECT_EQ(strides_of({a, b, c, d}), (std::vector<Dims>{kInOrder, kInOrder, kInOrder, kInOrder}));
}

TEST_F(InnerLayouts, WhatAnotherOpReadsStaysInOrder) {
  const auto a = convolve(x);
  g.op(OpKind::SoftMax, {a}, {{"axis", int64_t{3}}});
  convolve(a);
  EXPECT_EQ(strides_of({a}), std::vector<Dims>{kInOrder});
}

TEST_F(InnerLayouts, WeightsAreNoImages) {
  const auto weights = g.op(OpKind::Abs, {g.input(f32, {8, 8, 3, 3})});
  convolve_with(x, weights);
  EXPECT_EQ(strides_of({weights}), (std::vector<Dims>{{72, 9, 3, 1}}));
}

TEST_F(InnerLayouts, AChannelsLastFormatIsLeftAlone) {
  const auto y = g.input(f32, {2, 5, 6, 8});
  const auto a = convolve(y, "NXC");
  convolve(a, "NXC");
  EXPECT_EQ(strides_of({a}), std::vector<Dims>{dense_strides({2, 5, 6, 8})});
}

}  // namespace
}  // namespace lamina::testing
