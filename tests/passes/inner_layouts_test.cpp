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

TEST_F(InnerLayouts, JoinedImagesAreWrittenToTheirPartOfTheResult) {
  // a [2, 8, 5, 6], b [2, 8, 5, 6] -> c [2, 16, 5, 6]
  const auto a = convolve(x), b = pool(a), c = g.op(OpKind::Concat, {b, convolve(a)}, {{"axis", int64_t{-3}}});
  pool(c);
  EXPECT_EQ(strides_of({a, b, c}), (std::vector<Dims>{kChannelsLast, {480, 1, 96, 16}, {480, 1, 96, 16}}));
}

TEST_F(InnerLayouts, APartOfAPartHasTheStridesOfTheWhole) {
  const auto a = convolve(x), b = g.op(OpKind::Concat, {a, convolve(a)}, {{"axis", int64_t{1}}}),
             c = g.op(OpKind::Concat, {b, convolve(x)}, {{"axis", int64_t{1}}});
  pool(c);
  const Dims whole{720, 1, 144, 24};
  EXPECT_EQ(strides_of({a, b, c}), (std::vector<Dims>{whole, whole, whole}));
}

TEST_F(InnerLayouts, ImagesJoinedWithAUsersTensorStayInOrder) {
  const auto a = convolve(x), b = g.op(OpKind::Concat, {a, x}, {{"axis", int64_t{1}}});
  pool(b);
  EXPECT_EQ(strides_of({a, b}), (std::vector<Dims>{kInOrder, {480, 30, 6, 1}}));
}

TEST_F(InnerLayouts, ImagesJoinedAlongAnotherAxisStayInOrder) {
  const auto a = convolve(x), b = g.op(OpKind::Concat, {a, convolve(x)}, {{"axis", int64_t{2}}});
  pool(b);
  EXPECT_EQ(strides_of({a, b}), (std::vector<Dims>{kInOrder, {480, 60, 6, 1}}));
}

TEST_F(InnerLayouts, ASumOverSpaceReadsChannelsLast) {
  const auto mean = [&](uint64_t src, const Dims& axes) {
    return g.op(OpKind::ReduceMean, {src}, {{"axes", axes}, {"keep_dims", true}});
  };
  const auto a = convolve(x), b = convolve(x);
  mean(a, {3, -2});
  mean(b, {1});
  EXPECT_EQ(strides_of({a, b}), (std::vector<Dims>{kChannelsLast, kInOrder}));
}

TEST_F(InnerLayouts, AShuffleOfChannelsKeepsThemLast) {
  const auto shuffle = [&](uint64_t src, const std::vector<int64_t>& order) {
    const auto reshape = [&](uint64_t image, const Dims& shape) {
      return g.op(OpKind::StaticReshape, {image}, {{"shape", shape}, {"special_zero", false}});
    };
    const auto groups = reshape(src, {2, 4, 2, 5, 6});
    return reshape(g.op(OpKind::StaticTranspose, {groups}, {{"order", order}}), kImage);
  };
  const auto a = convolve(x), b = shuffle(a, {0, 2, 1, 3, 4});
  convolve(b);
  const auto c = convolve(x), d = shuffle(c, {0, 1, 2, 4, 3});  // it moves pixels too
  convolve(d);
  EXPECT_EQ(strides_of({a, b, c, d}), (std::vector<Dims>{kChannelsLast, kChannelsLast, kInOrder, kInOrder}));
}

}  // namespace
}  // namespace lamina::testing
