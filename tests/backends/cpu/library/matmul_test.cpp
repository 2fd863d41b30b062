// MatMul on the CPU backend: every form that its schema allows, compared with the reference, with the same bits for any number
// of threads and rows.
#include <gtest/gtest.h>

#include "backends/cpu/library/library_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;

struct Case {
  Dims src, weights;
  Dims bias = {};
  bool has_bias = false, transpose_a = false, transpose_b = false;
  DataType dtype = f32, dst = f32;
};

Graph graph_of(const Case& c) {
  GraphBuilder g;
  const uint64_t src = g.input(c.dtype, c.src), weights = g.input(c.dtype, c.weights);
  const uint64_t bias = c.has_bias ? g.input(c.dtype, c.bias) : kNoTensor;
  g.op(OpKind::MatMul, {src, weights, bias}, {{"transpose_a", c.transpose_a}, {"transpose_b", c.transpose_b}}, c.dst);
  return g.finish();
}

TEST(MatmulStep, FollowsNumpysRankRules) {
  for (const auto& [src, weights] : std::vector<std::pair<Dims, Dims>>{{{5}, {5}},
                                                                       {{5}, {5, 7}},
                                                                       {{4, 5}, {5}},
                                                                       {{4, 5}, {5, 7}},
                                                                       {{3, 4, 5}, {5, 7}},
                                                                       {{2, 3, 4, 5}, {5}},
                                                                       {{5}, {2, 5, 7}},
                                                                       {{3, 4, 5}, {3, 5, 7}},
                                                                       {{2, 1, 4, 5}, {3, 5, 7}},
                                                                       {{2, 3, 4, 5}, {2, 1, 5, 7}},
                                                                       {{1, 4, 5}, {6, 5, 7}},
                                                                       {{2, 3, 1, 5}, {2, 3, 5, 1}}}) {
    SCOPED_TRACE(describe(src) + " x " + describe(weights));
    expect_library_matches_reference(graph_of({.src = src, .weights = weights}));
  }
}

TEST(MatmulStep, TransposesEitherSide) {
  for (const auto& [a, b] : {std::pair{true, false}, {false, true}, {true, true}}) {
    SCOPED_TRACE(join("a ", a ? 1 : 0, ", b ", b ? 1 : 0));
    expect_library_matches_reference(graph_of({.src = a ? Dims{2, 33, 50} : Dims{2, 50, 33},
                                               .weights = b ? Dims{2, 70, 33} : Dims{2, 33, 70},
                                               .transpose_a = a,
                                               .transpose_b = b}));
    expect_library_matches_reference(graph_of({.src = a ? Dims{33, 300} : Dims{300, 33},
                                               .weights = b ? Dims{40, 33} : Dims{33, 40},
                                               .transpose_a = a,
                                               .transpose_b = b}));
  }
}

// With many rows, a transposed factor is copied before the product.
TEST(MatmulStep, ATransposedFactorHasTheBitsOfACopy) {
  constexpr int64_t m = 150, n = 90;
  for (const DataType dtype : {f32, bf16}) {
    for (const int64_t k : {33, 64}) {
      SCOPED_TRACE(join(name_of(dtype), " k ", k));
      const LibraryRun run = expect_library_matches_reference(
          graph_of({.src = {k, m}, .weights = {k, n}, .transpose_a = true, .dtype = dtype}), 2e-6);
      const Buffer& src = run.buffers.at(run.inputs[0].id);
      Buffer copy = src;
      for (int64_t row = 0; row < m; ++row)
        for (int64_t i = 0; i < k; ++i)
          store_from_double(dtype, copy.data(), row * k + i, load_as_double(dtype, src.data(), i * m + row));
      const LibraryRun of_copy =
          expect_library_matches_reference(graph_of({.src = {m, k}, .weights = {k, n}, .dtype = dtype}), 2e-6,
                                           {{run.inputs[0].id, copy}, {run.inputs[1].id, run.buffers.at(run.inputs[1].id)}});
      EXPECT_TRUE(run.buffers.at(run.outputs[0].id) == of_copy.buffers.at(of_copy.outputs[0].id));
    }
  }
}

TEST(MatmulStep, AddsABiasOfAnyShape) {
  for (const Dims& bias : std::vector<Dims>{{}, {1}, {20}, {1, 20}, {9, 1}, {9, 20}, {3, 1, 1}, {3, 9, 20}, {3, 1, 20}}) {
    SCOPED_TRACE(describe(bias));
    expect_library_matches_reference(graph_of({.src = {3, 9, 8}, .weights = {3, 8, 20}, .bias = bias, .has_bias = true}));
    expect_library_matches_reference(graph_of({.src = {3, 9, 8}, .weights = {8, 20}, .bias = bias, .has_bias = true}));
  }
  expect_library_matches_reference(graph_of({.src = {3, 200, 8}, .weights = {8, 20}, .bias = {200, 1}, .has_bias = true}));
  expect_library_matches_reference(graph_of({.src = {8}, .weights = {8, 20}, .bias = {20}, .has_bias = true}));
  expect_library_matches_reference(graph_of({.src = {5, 8}, .weights = {8}, .bias = {5}, .has_bias = true}));
}

TEST(MatmulStep, TakesManyTilesOfRowsAndColumns) {
  expect_library_matches_reference(graph_of({.src = {301, 257}, .weights = {257, 1203}}));
  expect_library_matches_reference(
      graph_of({.src = {1, 257}, .weights = {1203, 257}, .bias = {1203}, .has_bias = true, .transpose_b = true}));
  expect_library_matches_reference(graph_of({.src = {4, 3, 130, 64}, .weights = {4, 3, 64, 190}}));
}

TEST(MatmulStep, TakesSixteenBitTypes) {
  for (const DataType dtype : {bf16, f16}) {
    for (const DataType dst : {dtype, f32}) {
      SCOPED_TRACE(join(name_of(dtype), " to ", name_of(dst)));
      expect_library_matches_reference(graph_of({.src = {2, 60, 96}, .weights = {2, 96, 70}, .dtype = dtype, .dst = dst}));
      expect_library_matches_reference(graph_of({.src = {150, 96},
                                                 .weights = {70, 96},
                                                 .bias = {70},
                                                 .has_bias = true,
                                                 .transpose_b = true,
                                                 .dtype = dtype,
                                                 .dst = dst}));
    }
  }
}

TEST(MatmulStep, TakesF64) {
  constexpr DataType f64 = DataType::f64;
  for (const auto& [src, weights] : std::vector<std::pair<Dims, Dims>>{{{5}, {5}},
                                                                       {{4, 5}, {5}},
                                                                       {{3, 4, 5}, {5, 7}},
                                                                       {{2, 1, 4, 5}, {3, 5, 7}},
                                                                       {{150, 96}, {96, 70}},
                                                                       {{1, 257}, {257, 301}}})
    expect_library_matches_reference(graph_of({.src = src, .weights = weights, .dtype = f64, .dst = f64}), 1e-14);
  for (const Dims& bias : std::vector<Dims>{{}, {20}, {9, 1}, {3, 9, 20}})
    expect_library_matches_reference(
        graph_of({.src = {3, 9, 8}, .weights = {3, 8, 20}, .bias = bias, .has_bias = true, .dtype = f64, .dst = f64}), 1e-14);
  for (const auto& [a, b] : {std::pair{true, false}, {false, true}, {true, true}})
    expect_library_matches_reference(graph_of({.src = a ? Dims{2, 33, 50} : Dims{2, 50, 33},
                                               .weights = b ? Dims{2, 70, 33} : Dims{2, 33, 70},
                                               .transpose_a = a,
                                               .transpose_b = b,
                                               .dtype = f64,
                                               .dst = f64}),
                                     1e-14);
  expect_library_matches_reference(graph_of({.src = {4, 0}, .weights = {0, 7}, .dtype = f64, .dst = f64}));
}

TEST(MatmulStep, TakesAnyStrides) {
  for (const auto& [src, weights] : std::vector<std::pair<Dims, Dims>>{
           {{80, 8, 1}, {200, 20, 1}}, {{300, 3, 30}, {200, 20, 1}}, {{100, 10, 1}, {400, 2, 16}}, {{100, 1, 9}, {1, 60, 3}}}) {
    SCOPED_TRACE(describe(src) + ", " + describe(weights));
    GraphBuilder g;
    const auto a = g.input(f32, {3, 9, 8}, src), b = g.input(f32, {3, 8, 20}, weights);
    const auto dst = g.op(OpKind::MatMul, {a, b, kNoTensor});
    g.tensor(dst).shape = {3, 9, 20};
    g.tensor(dst).layout = LayoutType::strided;
    for (const Dims& strides : std::vector<Dims>{{180, 20, 1}, {400, 40, 2}, {400, 1, 10}}) {
      g.tensor(dst).strides = strides;
      expect_library_matches_reference(g.finish());
    }
  }
}

TEST(MatmulStep, SumsOfNothingAreTheBias) {
  expect_library_matches_reference(graph_of({.src = {4, 0}, .weights = {0, 7}}));
  expect_library_matches_reference(graph_of({.src = {2, 4, 0}, .weights = {0, 7}, .bias = {4, 1}, .has_bias = true}));
  expect_library_matches_reference(graph_of({.src = {0, 4}, .weights = {4, 7}}));
}

// The first rows of a product equal the product of the first rows.
TEST(MatmulStep, ARowsBitsAreItsOwn) {
  // One chain of 3,000 terms.
  const double error = 1e-5;
  for (const DataType dtype : {f32, bf16, f16}) {
    for (const auto& [k, n] : std::vector<std::pair<int64_t, int64_t>>{{64, 90}, {777, 90}, {3000, 90}, {1500, 1600}}) {
      const LibraryRun whole =
          expect_library_matches_reference(graph_of({.src = {150, k}, .weights = {k, n}, .dtype = dtype}), error);
      const auto elements_of = [&](const LibraryRun& run) {
        return elements(run.outputs[0], run.buffers.at(run.outputs[0].id));
      };
      const std::vector<double> all = elements_of(whole);
      for (const int64_t rows : {1, 2, 7, 33, 128}) {
        std::map<uint64_t, Buffer> given;
        for (const LogicalTensor& tensor : whole.inputs) given[tensor.id] = whole.buffers.at(tensor.id);
        const LibraryRun part =
            expect_library_matches_reference(graph_of({.src = {rows, k}, .weights = {k, n}, .dtype = dtype}), error, given);
        if (!rows_are_their_own(whole)) continue;
        const std::vector<double> first = elements_of(part);
        EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin()))
            << name_of(dtype) << ", " << rows << " rows, k " << k << ", n " << n;
      }
    }
  }
}

}  // namespace
}  // namespace lamina::testing
