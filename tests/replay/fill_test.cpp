// Data for graph inputs suits the ops that read it.
#include "lamina/fill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>

#include "support/graph_builder.h"

namespace lamina::driver {
namespace {

using testing::GraphBuilder;
constexpr DataType f32 = DataType::f32;

Buffers fill_all(const Graph& graph, uint64_t seed = 0) {
  Buffers buffers;
  for (const ValueIndex input : graph.inputs()) buffers[graph.tensor(input).id] = std::make_shared<Buffer>(graph.tensor(input));
  fill_inputs(graph, graph.inputs(), seed, buffers);
  return buffers;
}

template <typename Predicate>
bool every(const Buffer& buffer, const Predicate& predicate) {
  bool all = true;
  for_each_element(buffer.tensor(), 0, buffer.element_count(),
                   [&](int64_t, int64_t offset) { all = all && predicate(buffer.load(offset)); });
  return all;
}

TEST(Fill, StatisticsOfLayerNormBackwardBelongToTheirSrc) {
  for (const std::string stats_kind : {"variance", "rstd", "std"}) {
    GraphBuilder g;
    const auto src = g.input(f32, {3, 50});
    const auto mean = g.input(f32, {3});
    const auto variance = g.input(f32, {3});
    g.multi(OpKind::LayerNormBackward, {src, g.input(f32, {3, 50}), mean, variance, g.input(f32, {50})},
            {{"stats_kind", stats_kind}, {"epsilon", 0.5F}}, {f32, f32, f32});
    Buffers buffers = fill_all(g.finish());
    for (int64_t row = 0; row < 3; ++row) {
      double sum = 0;
      double squares = 0;
      for (int64_t i = 0; i < 50; ++i) sum += buffers[src]->load(row * 50 + i);
      for (int64_t i = 0; i < 50; ++i) squares += std::pow(buffers[src]->load(row * 50 + i) - sum / 50, 2);
      const double expected = stats_kind == "variance" ? squares / 50
                              : stats_kind == "std"    ? std::sqrt(squares / 50 + 0.5)
                                                       : 1 / std::sqrt(squares / 50 + 0.5);
      EXPECT_NEAR(buffers[mean]->load(row), sum / 50, 1e-6);
      EXPECT_NEAR(buffers[variance]->load(row), expected, 1e-6);
    }
  }
}

TEST(Fill, StatisticsOfGroupNormBackwardBelongToTheGroupsOfEachSample) {
  GraphBuilder g;
  const auto src = g.input(f32, {2, 5, 6});  // channels last, three groups of two
  const auto mean = g.input(f32, {2, 3});
  g.multi(OpKind::GroupNormBackward, {src, g.input(f32, {2, 5, 6}), mean, g.input(f32, {2, 3}), g.input(f32, {6})},
          {{"groups", int64_t{3}}}, {f32, f32, f32});
  Buffers buffers = fill_all(g.finish());
  for (int64_t row = 0; row < 6; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < 10; ++i) sum += buffers[src]->load(row / 3 * 30 + i / 2 * 6 + row % 3 * 2 + i % 2);
    EXPECT_NEAR(buffers[mean]->load(row), sum / 10, 1e-6);
  }
}

TEST(Fill, SoftMaxBackwardGetsARealSoftmax) {
  GraphBuilder g;
  const auto dst = g.input(f32, {4, 6, 5});
  g.op(OpKind::SoftMaxBackward, {g.input(f32, {4, 6, 5}), dst}, {{"axis", int64_t{1}}});
  Buffers buffers = fill_all(g.finish());
  for (int64_t outer = 0; outer < 4; ++outer)
    for (int64_t inner = 0; inner < 5; ++inner) {
      double sum = 0;
      for (int64_t i = 0; i < 6; ++i) sum += buffers[dst]->load((outer * 6 + i) * 5 + inner);
      EXPECT_NEAR(sum, 1, 1e-6);
    }
}

TEST(Fill, KeepsDivisorsOffZeroAndLogarithmsPositive) {
  GraphBuilder g;
  const auto divisor = g.input(f32, {1000});
  const auto positive = g.input(f32, {1000});
  const auto behind_a_reshape = g.input(f32, {1000});
  g.op(OpKind::Divide, {g.input(f32, {1000}), divisor});
  g.op(OpKind::Log, {positive});
  const auto reshaped =
      g.op(OpKind::StaticReshape, {behind_a_reshape}, {{"shape", std::vector<int64_t>{10, 100}}, {"special_zero", false}});
  g.op(OpKind::Sqrt, {reshaped});
  Buffers buffers = fill_all(g.finish());
  EXPECT_TRUE(every(*buffers[divisor], [](double x) { return std::abs(x) >= 0.5; }));
  EXPECT_TRUE(every(*buffers[positive], [](double x) { return x > 0; }));
  EXPECT_TRUE(every(*buffers[behind_a_reshape], [](double x) { return x > 0; }));
}

TEST(Fill, ForwardResultsLieInTheirRange) {
  GraphBuilder g;
  const auto sigmoid = g.input(f32, {500});
  const auto relu = g.input(f32, {500});
  g.op(OpKind::SigmoidBackward, {sigmoid, g.input(f32, {500})}, {{"use_dst", true}});
  g.op(OpKind::ReLUBackward, {relu, g.input(f32, {500})}, {{"use_dst", true}});
  Buffers buffers = fill_all(g.finish());
  EXPECT_TRUE(every(*buffers[sigmoid], [](double x) { return x > 0 && x < 1; }));
  EXPECT_TRUE(every(*buffers[relu], [](double x) { return x >= 0; }));
}

TEST(Fill, QuantizeReachesBothEndsOfItsRange) {
  GraphBuilder g;
  const auto src = g.input(f32, {4000});
  g.op(OpKind::Quantize, {src}, {{"scales", std::vector<float>{0.1F}}, {"zps", std::vector<int64_t>{10}}}, DataType::u8);
  Buffers buffers = fill_all(g.finish());
  EXPECT_FALSE(every(*buffers[src], [](double x) { return x / 0.1 + 10 >= 0; }));
  EXPECT_FALSE(every(*buffers[src], [](double x) { return x / 0.1 + 10 <= 255; }));
}

TEST(Fill, IntegersCoverTheirTypeAndBooleansAreZeroOrOne) {
  GraphBuilder g;
  const auto bytes = g.input(DataType::s8, {5000});
  const auto nibbles = g.input(DataType::s4, {5000});
  const auto condition = g.input(DataType::boolean, {100});
  g.op(OpKind::Dequantize, {bytes}, {{"scales", std::vector<float>{0.1F}}, {"zps", std::vector<int64_t>{0}}}, f32);
  g.op(OpKind::DynamicDequantize, {nibbles, g.input(f32, {1})}, {}, f32);
  g.op(OpKind::Select, {condition, g.input(f32, {100}), g.input(f32, {100})}, {}, f32);
  Buffers buffers = fill_all(g.finish());
  EXPECT_FALSE(every(*buffers[bytes], [](double x) { return x > -120; }));
  EXPECT_FALSE(every(*buffers[bytes], [](double x) { return x < 120; }));
  EXPECT_TRUE(every(*buffers[nibbles], [](double x) { return x >= -8 && x <= 7; }));
  EXPECT_FALSE(every(*buffers[nibbles], [](double x) { return x > -8; }));
  EXPECT_TRUE(every(*buffers[condition], [](double x) { return x == 0 || x == 1; }));
  EXPECT_FALSE(every(*buffers[condition], [](double x) { return x == 0; }));
}

TEST(Fill, IsTheSameForAnyThreadCountAndDiffersByTensorAndSeed) {
  GraphBuilder g;
  const auto a = g.input(f32, {70'000});
  const auto b = g.input(f32, {70'000});
  g.op(OpKind::Add, {a, b});
  const Graph graph = g.finish();
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  Buffers one = fill_all(graph, 3);
  omp_set_num_threads(7);
  Buffers seven = fill_all(graph, 3);
  omp_set_num_threads(threads);
  Buffers other_seed = fill_all(graph, 4);
  EXPECT_EQ(std::memcmp(one[a]->data(), seven[a]->data(), 280'000), 0);
  EXPECT_NE(std::memcmp(one[a]->data(), one[b]->data(), 280'000), 0);
  EXPECT_NE(std::memcmp(one[a]->data(), other_seed[a]->data(), 280'000), 0);
}

TEST(Fill, WeightsInF16KeepLongSumsInRange) {
  GraphBuilder g;
  const auto weights = g.input(DataType::f16, {300, 40}), turned = g.input(DataType::f16, {40, 300});
  const auto keys = g.input(DataType::f16, {2, 300, 40});
  const auto src = g.input(DataType::f16, {2, 4, 300});
  g.op(OpKind::MatMul, {src, weights});
  g.op(OpKind::MatMul, {src, turned}, {{"transpose_b", true}});
  g.op(OpKind::MatMul, {src, keys});
  Buffers buffers = fill_all(g.finish());
  EXPECT_TRUE(every(*buffers[weights], [](double x) { return std::abs(x) <= 0.1; }));
  EXPECT_TRUE(every(*buffers[turned], [](double x) { return std::abs(x) <= 0.1; }));
  EXPECT_FALSE(every(*buffers[keys], [](double x) { return std::abs(x) <= 0.5; }));
}

}  // namespace
}  // namespace lamina::driver
