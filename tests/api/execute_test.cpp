// Compiling and executing through the public interface: shapes, layouts, memory, threads.
#include <omp.h>
#include <bit>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>
#include <thread>

#include "api_fixture.h"

namespace api_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class Execute : public ::testing::Test {
 protected:
  tensor bind(const logical_tensor& lt, std::vector<float>& memory) { return {lt, cpu_, memory.data()}; }
  engine cpu_{engine::kind::cpu, 0};
  stream stream_{cpu_};
};

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i)) * 3.0f + 0.5f;
  return values;
}

// (x - mean) / sqrt(variance + 1e-5) over rows, in double.
std::vector<float> normalized_rows(const std::vector<float>& x, size_t columns) {
  std::vector<float> result(x.size());
  for (size_t row = 0; row < x.size() / columns; ++row) {
    const float* in = &x[row * columns];
    const double mean = std::accumulate(in, in + columns, 0.0) / static_cast<double>(columns);
    double variance = 0;
    for (size_t i = 0; i < columns; ++i) variance += (in[i] - mean) * (in[i] - mean);
    variance /= static_cast<double>(columns);
    for (size_t i = 0; i < columns; ++i)
      result[row * columns + i] = static_cast<float>((in[i] - mean) / std::sqrt(variance + 1e-5));
  }
  return result;
}

std::vector<op> norm_and_relu(const logical_tensor& src, const logical_tensor& normed, const logical_tensor& dst) {
  return {op(0, op::kind::LayerNorm, {src}, {normed}, "ln")
              .set_attr(op::attr::use_affine, false)
              .set_attr(op::attr::keep_stats, false)
              .set_attr(op::attr::epsilon, 1e-5f),
          op(1, op::kind::ReLU, {normed}, {dst}, "relu")};
}

TEST_F(Execute, FusedNormAndReluGiveTheRightNumbers) {
  const auto src = f32(0, {37, 83}), normed = f32(1, {37, 83}), dst = f32(2, {37, 83});
  auto x = ramp(37 * 83);
  std::vector<float> y(x.size());
  only_partition_of(norm_and_relu(src, normed, dst))
      .compile({src}, {dst}, cpu_)
      .execute(stream_, {bind(src, x)}, {bind(dst, y)});
  stream_.wait();
  auto expected = normalized_rows(x, 83);
  for (float& value : expected) value = std::max(value, 0.0f);
  EXPECT_THAT(y, ::testing::Pointwise(::testing::FloatNear(2e-6f), expected));
}

// Compiles one partition for two shapes; dst is the output as described in the graph, with unknown shape.
void compile_for_two_shapes(const partition& p, const logical_tensor& dst, const engine& cpu, const stream& s) {
  for (const int64_t rows : {2, 5}) {
    const auto src = f32(0, {rows, 16});
    const compiled_partition compiled = p.compile({src}, {dst}, cpu);
    const logical_tensor out = compiled.query_logical_tensor(dst.get_id());
    EXPECT_THAT(out.get_dims(), ElementsAre(rows, 16));
    auto x = ramp(static_cast<size_t>(rows) * 16);
    std::vector<float> y(x.size(), -1.0f);
    compiled.execute(s, {{src, cpu, x.data()}}, {{out, cpu, y.data()}});
    EXPECT_THAT(y, Each(::testing::Ge(0.0f)));
  }
}

TEST_F(Execute, DimsMayStayUnknownUntilCompile) {
  const auto unknown = [](size_t id) { return logical_tensor(id, data_type::f32, 2, layout_type::strided); };
  compile_for_two_shapes(only_partition_of(norm_and_relu(unknown(0), unknown(1), unknown(2))), unknown(2), cpu_, stream_);
}

TEST_F(Execute, RanksMayStayUnknownUntilCompile) {
  const logical_tensor src(0, data_type::f32), squared(1, data_type::f32), dst(2, data_type::f32);
  compile_for_two_shapes(only_partition_of({op(1, op::kind::Square, {src}, {squared}, "square"), relu(squared, dst)}), dst,
                         cpu_, stream_);
}

TEST_F(Execute, UnknownInputShapeIsRefusedAtCompile) {
  const logical_tensor src(0, data_type::f32, 2, layout_type::strided), dst(1, data_type::f32, 2, layout_type::strided);
  const partition p = only_partition_of({relu(src, dst)});
  EXPECT_THAT(failure_of([&] { p.compile({src}, {dst}, cpu_); }), FailsWith(lamina_invalid_shape, "input 0 is f32[?, ?]"));
}

TEST_F(Execute, LayoutAnyBecomesDenseAndIsReadBack) {
  const auto src = f32(0, {2, 3, 4});
  const logical_tensor dst(1, data_type::f32, dims{2, 3, 4}, layout_type::any);
  const logical_tensor chosen = compiled_relu(src, dst, cpu_).query_logical_tensor(1);
  EXPECT_EQ(chosen.get_layout_type(), layout_type::strided);
  EXPECT_THAT(chosen.get_strides(), ElementsAre(12, 4, 1));
}

TEST_F(Execute, GivenStridesAreRespectedAndGapsAreLeftAlone) {
  // src transposed, dst with a gap of 2 elements after each row
  const logical_tensor src(0, data_type::f32, {2, 3}, dims{1, 2}), dst(1, data_type::f32, {2, 3}, dims{5, 1});
  std::vector<float> x = {1, 4, 2, 5, 3, 6}, y(10, 99);
  const auto compiled = compiled_relu(src, dst, cpu_);
  EXPECT_THAT(compiled.query_logical_tensor(1).get_strides(), ElementsAre(5, 1));
  compiled.execute(stream_, {bind(src, x)}, {bind(dst, y)});
  EXPECT_THAT(y, ElementsAre(1, 2, 3, 99, 99, 4, 5, 6, 99, 99));
}

TEST_F(Execute, ScalarsAreTensorsOfRankZero) {
  const auto src = f32(0, {}), dst = f32(1, {});
  std::vector<float> x = {3}, y = {0};
  compiled_relu(src, dst, cpu_).execute(stream_, {bind(src, x)}, {bind(dst, y)});
  EXPECT_THAT(y, ElementsAre(3));
}

TEST_F(Execute, ZeroSizeSucceedsWithNullHandles) {
  const auto src = f32(0, {0, 8}), dst = f32(1, {0, 8});
  EXPECT_NO_THROW(compiled_relu(src, dst, cpu_).execute(stream_, {{src, cpu_, nullptr}}, {{dst, cpu_, nullptr}}));
}

TEST_F(Execute, InPlaceWhereThePortsAllowIt) {
  const auto src = f32(0, {4, 8}), dst = f32(1, {4, 8});
  const auto compiled = compiled_relu(src, dst, cpu_);
  ASSERT_THAT(compiled.get_inplace_ports(), ElementsAre(std::pair<size_t, size_t>(0, 1)));
  auto x = ramp(32);
  auto expected = x;
  for (float& value : expected) value = std::max(value, 0.0f);
  compiled.execute(stream_, {bind(src, x)}, {bind(dst, x)});
  EXPECT_EQ(x, expected);
}

// x = x - y, y = x + y, z = x * y, each from the old values
TEST_F(Execute, SeveralOutputsInPlaceOfTheInputsThatTheCallerNames) {
  const auto x = f32(0, {1000}), y = f32(1, {1000}), a = f32(2, {1000}), b = f32(3, {1000}), c = f32(4, {1000});
  const partition p =
      only_partition_of({op(0, op::kind::Subtract, {x, y}, {a}, "difference"), op(1, op::kind::Add, {x, y}, {b}, "sum"),
                         op(2, op::kind::Multiply, {x, y}, {c}, "product")});
  const auto compiled = p.compile({x, y}, {a, b, c}, cpu_);
  for (const size_t input : {0, 1})
    for (const size_t output : {2, 3, 4}) EXPECT_TRUE(compiled.may_share(input, output));
  EXPECT_FALSE(compiled.may_share(2, 0));
  EXPECT_THAT(failure_of([&] { compiled.may_share(0, 5); }), FailsWith(lamina_invalid_arguments, "tensor 5 is not a port"));
  auto first = ramp(1000), second = ramp(1000), third = ramp(1000);
  for (float& value : second) value = 3 - value;
  const auto old_first = first, old_second = second;
  compiled.execute(stream_, {bind(x, first), bind(y, second)}, {bind(a, second), bind(b, third), bind(c, first)});
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(second[i], old_first[i] - old_second[i]);
    EXPECT_EQ(third[i], old_first[i] + old_second[i]);
    EXPECT_EQ(first[i], old_first[i] * old_second[i]);
  }
}

TEST_F(Execute, TensorsAreMatchedByIdInAnyOrder) {
  const auto a = f32(7, {2}), b = f32(3, {2}), c = f32(5, {2}), stranger = f32(99, {4});
  const partition p = only_partition_of({op(0, op::kind::Subtract, {a, b}, {c}, "sub")});
  std::vector<float> x = {5, 7}, y = {1, 2}, z(2), unused(4);
  const auto compiled = p.compile({b, stranger, a}, {c}, cpu_);
  compiled.execute(stream_, {bind(stranger, unused), bind(b, y), bind(a, x)}, {bind(c, z)});
  EXPECT_THAT(z, ElementsAre(4, 5));
}

TEST_F(Execute, RefusesTensorsThatDoNotFit) {
  const auto src = f32(0, {2, 3}), dst = f32(1, {2, 3});
  const auto compiled = compiled_relu(src, dst, cpu_);
  std::vector<float> x(12), y(12);
  const auto failing = [&](const std::vector<tensor>& in, const std::vector<tensor>& out) {
    return failure_of([&] { compiled.execute(stream_, in, out); });
  };
  EXPECT_THAT(failing({}, {bind(dst, y)}), FailsWith(lamina_invalid_arguments, "input 0 is missing"));
  EXPECT_THAT(failing({bind(src, x)}, {bind(f32(9, {2, 3}), y)}), FailsWith(lamina_invalid_arguments, "output 1 is missing"));
  EXPECT_THAT(failing({bind(f32(0, {3, 2}), x)}, {bind(dst, y)}),
              FailsWith(lamina_invalid_arguments, "input 0 is f32[3, 2], compiled for f32[2, 3]"));
  EXPECT_THAT(failing({bind({0, data_type::s32, {2, 3}, layout_type::strided}, x)}, {bind(dst, y)}),
              FailsWith(lamina_invalid_arguments, "input 0 is s32[2, 3], compiled for f32[2, 3]"));
  EXPECT_THAT(failing({bind({0, data_type::f32, {2, 3}, dims{6, 1}}, x)}, {bind(dst, y)}),
              FailsWith(lamina_invalid_arguments, "input 0 has strides [6, 1], compiled for [3, 1]"));
  EXPECT_THAT(failing({{src, cpu_, nullptr}}, {bind(dst, y)}),
              FailsWith(lamina_invalid_arguments, "input 0 has a null handle"));
}

TEST_F(Execute, RefusesLogicalTensorsThatDoNotFitAtCompile) {
  const auto src = f32(0, {2, 3}), dst = f32(1, {2, 3});
  const partition p = only_partition_of({relu(src, dst)});
  EXPECT_THAT(failure_of([&] { p.compile({}, {dst}, cpu_); }),
              FailsWith(lamina_invalid_arguments, "no logical tensor for input port 0"));
  EXPECT_THAT(failure_of([&] { p.compile({src}, {}, cpu_); }),
              FailsWith(lamina_invalid_arguments, "no logical tensor for output port 1"));
  EXPECT_THAT(failure_of([&] { p.compile({src}, {dst, f32(8, {2, 3})}, cpu_); }),
              FailsWith(lamina_invalid_arguments, "tensor 8 is not an output port"));
  EXPECT_THAT(failure_of([&] { p.compile({f32(0, {2, 4})}, {dst}, cpu_); }),
              FailsWith(lamina_invalid_shape, "input 0 is f32[2, 4], allowed is the shape in the graph, f32[2, 3]"));
  EXPECT_THAT(failure_of([&] { p.compile({{0, data_type::bf16, {2, 3}, layout_type::strided}}, {dst}, cpu_); }),
              FailsWith(lamina_invalid_data_type, "input 0 has type bf16, allowed is the type in the graph, f32"));
  EXPECT_THAT(failure_of([&] { p.compile({{0, data_type::f32, dims{2, 3}, size_t{5}}}, {dst}, cpu_); }),
              FailsWith(lamina_invalid_arguments, "layout opaque"));
  EXPECT_THAT(failure_of([&] { p.compile({src}, {{1, data_type::f32, dims{2, 3}, dims{1, 0}}}, cpu_); }),
              FailsWith(lamina_invalid_arguments,
                        "output 1 has stride 0 along axis 1, where 3 elements would be written to the same address"));
  for (const dims& strides : {dims{1, 1}, dims{2, 1}, dims{3, 3}})
    EXPECT_THAT(failure_of([&] { p.compile({src}, {{1, data_type::f32, dims{2, 3}, strides}}, cpu_); }),
                FailsWith(lamina_invalid_arguments,
                          "output 1 has strides that map several elements to the same address: f32[2, 3], strides"));
}

TEST_F(Execute, TakesStridesThatInterleaveWithoutMeeting) {
  const auto src = f32(0, {2, 2});
  const logical_tensor dst(1, data_type::f32, dims{2, 2}, dims{3, 2});
  const auto compiled = only_partition_of({relu(src, f32(1, {2, 2}))}).compile({src}, {dst}, cpu_);
  std::vector<float> x{1, 2, 3, 4}, y(6, -1);
  compiled.execute(stream_, {bind(src, x)}, {bind(dst, y)});
  EXPECT_THAT(y, ElementsAre(1, -1, 2, 3, -1, 4));
}

TEST_F(Execute, TakesStridesOfZeroWhereNoTwoElementsShareAPlace) {
  const logical_tensor row(1, data_type::f32, dims{1, 3}, dims{0, 1}), none(1, data_type::f32, dims{0, 3}, dims{3, 0});
  for (const logical_tensor& dst : {row, none}) {
    const auto src = f32(0, dst.get_dims());
    const auto compiled = only_partition_of({relu(src, f32(1, dst.get_dims()))}).compile({src}, {dst}, cpu_);
    auto x = ramp(3);
    std::vector<float> y(3);
    compiled.execute(stream_, {bind(src, x)}, {bind(dst, y)});
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(y[i], dst.get_dims()[0] == 1 ? std::max(x[i], 0.0f) : 0);
  }
}

TEST_F(Execute, QueryOfAStrangerNamesThePorts) {
  const auto compiled = compiled_relu(f32(0, {2}), f32(1, {2}), cpu_);
  EXPECT_THAT(failure_of([&] { compiled.query_logical_tensor(4); }),
              FailsWith(lamina_invalid_arguments, "tensor 4 is not a port; inputs: 0; outputs: 1"));
}

TEST_F(Execute, ManyThreadsShareOneCompiledPartition) {
  const auto src = f32(0, {64, 100}), normed = f32(1, {64, 100}), dst = f32(2, {64, 100});
  const auto compiled = only_partition_of(norm_and_relu(src, normed, dst)).compile({src}, {dst}, cpu_);
  auto x = ramp(6400);
  std::vector<float> expected(6400);
  compiled.execute(stream_, {bind(src, x)}, {bind(dst, expected)});

  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const stream own(cpu_);
      for (int round = 0; round < 20; ++round) {
        std::vector<float> y(6400);
        compiled.execute(own, {{src, cpu_, x.data()}}, {{dst, cpu_, y.data()}});
        if (y != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Execute, WorksInsideAnOpenMpRegion) {
  const auto src = f32(0, {64, 100}), normed = f32(1, {64, 100}), dst = f32(2, {64, 100});
  const auto compiled = only_partition_of(norm_and_relu(src, normed, dst)).compile({src}, {dst}, cpu_);
  auto x = ramp(6400);
  std::vector<float> expected(6400);
  compiled.execute(stream_, {bind(src, x)}, {bind(dst, expected)});
  int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    std::vector<float> y(6400);
    compiled.execute(stream_, {{src, cpu_, x.data()}}, {{dst, cpu_, y.data()}});
    wrong += y != expected;
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(Execute, ManyThreadsCompileAtOnce) {
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto src = f32(0, {4, 8 + t}), normed = f32(1, {4, 8 + t}), dst = f32(2, {4, 8 + t});
      std::vector<float> x(static_cast<size_t>(4 * (8 + t)), 1.0f), y(x.size(), 7.0f);
      partitions_of(norm_and_relu(src, normed, dst))
          .at(0)
          .compile({src}, {dst}, cpu_)
          .execute(stream_, {{src, cpu_, x.data()}}, {{dst, cpu_, y.data()}});
      if (y != std::vector<float>(x.size(), 0.0f)) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(Execute, AProductOfRowsThatOverlapIsComputed) {
  const auto product_of = [&](data_type type, const auto& x, const auto& w, auto y) {
    const logical_tensor src{0, type, dims{2, 3}, dims{1, 1}}, weights{1, type, dims{3, 2}, dims{2, 1}};
    const logical_tensor dst{2, type, dims{2, 2}, dims{2, 1}};
    only_partition_of({op(0, op::kind::MatMul, {src, weights}, {dst}, "product")})
        .compile({src, weights}, {dst}, cpu_)
        .execute(stream_,
                 {{src, cpu_, const_cast<void*>(static_cast<const void*>(x.data()))},
                  {weights, cpu_, const_cast<void*>(static_cast<const void*>(w.data()))}},
                 {{dst, cpu_, y.data()}});
    return y;
  };
  const std::vector<float> x{1, 2, 3, 4}, w{1, 0, 0, 1, 2, 5}, y{7, 17, 10, 23};
  EXPECT_EQ(product_of(data_type::f32, x, w, std::vector<float>(4)), y);
  const auto bf16_of = [](const std::vector<float>& values) {
    std::vector<uint16_t> halves;
    for (const float value : values) halves.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    return halves;
  };
  EXPECT_EQ(product_of(data_type::bf16, bf16_of(x), bf16_of(w), std::vector<uint16_t>(4)), bf16_of(y));
}

// ---- a norm as small ops

// (x - mean) / sqrt(mean of squares + epsilon): 7 ops, ids 10..16; epsilon is tensor 1.
std::vector<op> written_out_norm(const logical_tensor& x, const logical_tensor& epsilon, const logical_tensor& dst) {
  const dims shape = x.get_dims();
  const auto full = [&](size_t id) { return f32(id, shape); };
  const auto row = [&](size_t id) { return f32(id, {shape[0], 1}); };
  const auto mean_of = [](size_t id, const logical_tensor& src, const logical_tensor& mean) {
    return op(id, op::kind::ReduceMean, {src}, {mean}, "mean")
        .set_attr(op::attr::axes, std::vector<int64_t>{1})
        .set_attr(op::attr::keep_dims, true);
  };
  return {mean_of(10, x, row(20)),
          op(11, op::kind::Subtract, {x, row(20)}, {full(21)}, "centre"),
          op(12, op::kind::Multiply, {full(21), full(21)}, {full(22)}, "square"),
          mean_of(13, full(22), row(23)),
          op(14, op::kind::Add, {row(23), epsilon}, {row(24)}, "epsilon"),
          op(15, op::kind::Sqrt, {row(24)}, {row(25)}, "root"),
          op(16, op::kind::Divide, {full(21), row(25)}, {dst}, "norm")};
}

TEST_F(Execute, ANormWrittenOutRunsAsOneOp) {
  const auto src = f32(0, {37, 83}), epsilon = f32(1, {1}), dst = f32(2, {37, 83});
  graph g(engine::kind::cpu);
  for (const op& each : written_out_norm(src, epsilon, dst)) g.add_op(each);
  g.set_constant(1, 1e-5);
  g.finalize();
  const auto partitions = g.get_partitions();
  ASSERT_EQ(partitions.size(), 1u);
  EXPECT_THAT(partitions[0].get_ops(), ::testing::UnorderedElementsAre(10, 11, 12, 13, 14, 15, 16));
  EXPECT_EQ(partitions[0].get_ops_num(), 7u);
  ASSERT_EQ(partitions[0].get_input_ports().size(), 1u);  // epsilon is a constant of the compiled code; passing it is allowed
  EXPECT_EQ(partitions[0].get_input_ports()[0].get_id(), 0u);
  auto x = ramp(37 * 83);
  std::vector<float> y(x.size()), eps{1e-5f};
  partitions[0].compile({src, epsilon}, {dst}, cpu_).execute(stream_, {bind(src, x), bind(epsilon, eps)}, {bind(dst, y)});
  EXPECT_THAT(y, ::testing::Pointwise(::testing::FloatNear(1e-6f), normalized_rows(x, 83)));
}

TEST_F(Execute, ANormWhoseEpsilonIsNotKnownReadsIt) {
  const auto src = f32(0, {37, 83}), epsilon = f32(1, {1}), dst = f32(2, {37, 83});
  const auto fused = only_partition_of(written_out_norm(src, epsilon, dst));
  EXPECT_EQ(fused.get_input_ports().size(), 2u);
  auto x = ramp(37 * 83);
  std::vector<float> y(x.size()), eps{1e-5f};
  fused.compile({src, epsilon}, {dst}, cpu_).execute(stream_, {bind(src, x), bind(epsilon, eps)}, {bind(dst, y)});
  EXPECT_THAT(y, ::testing::Pointwise(::testing::FloatNear(2e-6f), normalized_rows(x, 83)));
}

}  // namespace
}  // namespace api_test
