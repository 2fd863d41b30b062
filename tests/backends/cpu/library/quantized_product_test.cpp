// Products of dequantised integers run exactly on the integers if their scales can be factored out of the sum; otherwise the
// integers are dequantised first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cpu/library/library_check.h"
#include "kernels/plan.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, u8 = DataType::u8, s8 = DataType::s8;

struct Factor {
  Dims shape;
  DataType dtype = s8;
  std::vector<float> scales = {0.05f};
  int64_t zero_point = 0;
  int64_t axis = 1;
  Dims strides = {};  // empty: dense
};

uint64_t dequantized(GraphBuilder& g, const Factor& f, DataType as, uint64_t source) {
  const uint64_t value = g.op(OpKind::Dequantize, {source},
                              {{"scales", f.scales},
                               {"zps", std::vector<int64_t>(f.scales.size(), f.zero_point)},
                               {"qtype", std::string(f.scales.size() > 1 ? "per_channel" : "per_tensor")},
                               {"axis", f.axis}},
                              f32);
  return as == f32 ? value : g.op(OpKind::TypeCast, {value}, {}, as);
}

struct Case {
  Factor src = {{40, 96}, u8, {0.1f}, 3}, weights = {{96, 70}};
  bool has_bias = false, transpose_b = false, behind = false, is_constant = false;
  DataType dtype = f32;
};

Graph product(const Case& c) {
  GraphBuilder g;
  const uint64_t src = dequantized(g, c.src, c.dtype, g.input(c.src.dtype, c.src.shape, c.src.strides));
  const uint64_t integers = c.is_constant ? g.constant(c.weights.dtype, c.weights.shape)
                                          : g.input(c.weights.dtype, c.weights.shape, c.weights.strides);
  const uint64_t weights = dequantized(g, c.weights, c.dtype, integers);
  const int64_t columns = c.weights.shape[c.weights.shape.size() - (c.transpose_b ? 2 : 1)];
  const uint64_t bias = c.has_bias ? g.input(c.dtype, {columns}) : kNoTensor;
  const uint64_t dst = g.op(OpKind::MatMul, {src, weights, bias}, {{"transpose_b", c.transpose_b}});
  if (c.behind) g.op(OpKind::SoftMax, {dst}, {{"axis", int64_t{-1}}});
  return g.finish();
}

// Generated products have none yet.
bool applies_post_ops() {
  Op op, relu;
  op.kind = OpKind::MatMul, relu.kind = OpKind::ReLU;
  return cpu_backend().plan_target()->library->takes_post_op(op, relu).has_value();
}

void expect_integers(const Case& c, double error = 2e-6) {
  // The reference rounds factors that are cast to 16 bits.
  const double rounding = c.dtype == bf16 ? 2e-2 : 0;
  const LibraryRun run = expect_library_matches_reference(product(c), error + rounding);
  EXPECT_THAT(run.info.kernels, Not(Contains(HasSubstr("dequantize"))));
}

std::vector<float> ramp(size_t count) {
  std::vector<float> scales(count);
  for (size_t i = 0; i < count; ++i) scales[i] = 0.01f + 0.003f * static_cast<float>(i % 17);
  return scales;
}

TEST(QuantizedProduct, TakesTheIntegers) {
  expect_integers({});
  expect_integers({.src = {{40, 96}, s8}});
  expect_integers({.src = {{3, 40, 96}, u8, {0.1f}, 128}});
  expect_integers({.has_bias = true});
  expect_integers({.is_constant = true});
  expect_integers({.src = {{300, 2000}, s8, {0.2f}, -7}, .weights = {{2000, 1100}}});
}

TEST(QuantizedProduct, OfAnySize) {
  for (const int64_t m : {1, 5, 129}) {
    for (const int64_t k : {1, 3, 64, 130}) {
      for (const int64_t n : {1, 2, 33, 64, 100}) {
        SCOPED_TRACE(join(m, " x ", k, " x ", n));
        expect_integers(
            {.src = {{m, k}, u8, {0.1f}, 7}, .weights = {{k, n}, s8, ramp(static_cast<size_t>(n)), 0, 1}, .has_bias = true});
        expect_integers({.src = {{2, m, k}, s8}, .weights = {{2, k, n}}, .dtype = n % 2 == 0 ? f32 : bf16}, 1e-3);
      }
    }
  }
}

// Each factor is row-major, column-major, or has gaps between its rows or columns.
TEST(QuantizedProduct, OfAnyLayout) {
  const auto layouts = [](int64_t rows, int64_t columns) {
    return std::vector<Dims>{{rows * columns, columns, 1},
                             {rows * columns, 1, rows},
                             {rows * (columns + 3), columns + 3, 1},
                             {(rows + 5) * columns, 1, rows + 5}};
  };
  const int64_t m = 9;
  for (const int64_t k : {3, 64, 67}) {
    for (const int64_t n : {1, 15, 17, 32, 33, 65}) {
      for (const Dims& of_weights : layouts(k, n)) {
        for (const Dims& of_src : {layouts(m, k)[0], layouts(m, k)[1]}) {
          for (const DataType weights : {u8, s8}) {
            SCOPED_TRACE(join("k ", k, ", n ", n, ", weights ", name_of(weights), " ", describe(of_weights)));
            expect_integers({.src = {{2, m, k}, u8, {0.1f}, 127, 1, of_src},
                             .weights = {{2, k, n}, weights, {0.2f}, weights == u8 ? 132 : 3, 1, of_weights}},
                            4e-6);
          }
        }
      }
    }
  }
}

TEST(QuantizedProduct, ScalesMayDifferByColumn) {
  expect_integers({.weights = {{96, 70}, s8, ramp(70), 0, 1}});
  expect_integers({.weights = {{70, 96}, s8, ramp(70), 0, 0}, .has_bias = true, .transpose_b = true});
  expect_integers({.src = {{8, 2000}, u8, {0.1f}, 9}, .weights = {{2000, 3000}, s8, ramp(3000), 0, 1}, .is_constant = true});
}

TEST(QuantizedProduct, BothFactorsMayHaveZeroPoints) {
  for (const auto& [src, zero_points] : {std::pair{u8, std::vector<int64_t>{0, 1, 255}}, {s8, {-128, 0, 127}}}) {
    for (const int64_t src_zero_point : zero_points) {
      for (const auto& [weights, weights_zero_points] :
           {std::pair{u8, std::vector<int64_t>{0, 128, 255}}, {s8, {-128, 3, 127}}}) {
        for (const int64_t weights_zero_point : weights_zero_points) {
          SCOPED_TRACE(join(name_of(src), " ", src_zero_point, " x ", name_of(weights), " ", weights_zero_point));
          const Factor a{{2, 40, 96}, src, {0.1f}, src_zero_point};
          expect_integers({.src = a, .weights = {{2, 96, 70}, weights, {0.05f}, weights_zero_point}}, 4e-6);
          expect_integers({.src = a,
                           .weights = {{70, 96}, weights, ramp(70), weights_zero_point, 0},
                           .has_bias = true,
                           .transpose_b = true},
                          4e-6);
        }
      }
    }
  }
  expect_integers({.src = {{300, 130}, u8, {0.1f}, 9}, .weights = {{130, 700}, u8, {0.1f}, 77}, .is_constant = true}, 4e-6);
  expect_integers({.src = {{3, 1, 64}, u8, {0.1f}, 134}, .weights = {{3, 64, 33}, u8, {0.1f}, 128}, .dtype = bf16}, 1e-3);
}

TEST(QuantizedProduct, MayBeCastBetween) {
  expect_integers({.dtype = bf16}, 1e-3);
  expect_integers({.weights = {{96, 70}, s8, ramp(70), 0, 1}, .dtype = bf16}, 1e-3);
}

TEST(QuantizedProduct, IsTiledWithWhatStandsBehindIt) {
  const Case c{.src = {{1000, 96}, u8, {0.1f}, 3}, .behind = true};
  const LibraryRun run =
      expect_library_matches_reference(product(c), 1e-4);  // covers the error of a score and of each probability
  EXPECT_THAT(run.info.kernel_texts, Contains(HasSubstr("tile of ")));
  EXPECT_EQ(run.info.kernels.size(), 2u);
}

// A cast to 16 bits rounds, also for consumers in the same step.
TEST(QuantizedProduct, ACastBehindItRounds) {
  GraphBuilder g;
  const uint64_t a = dequantized(g, {{40, 96}, u8, {0.1f}, 3}, f32, g.input(u8, {40, 96}));
  const uint64_t b = dequantized(g, {{96, 70}}, f32, g.input(s8, {96, 70}));
  g.op(OpKind::TypeCast, {g.op(OpKind::TypeCast, {g.op(OpKind::MatMul, {a, b})}, {}, bf16)}, {}, f32);
  const LibraryRun run = expect_library_matches_reference(g.finish(), 1e-2);
  const LogicalTensor& dst = run.outputs.at(0);
  for (const double value : elements(dst, run.buffers.at(dst.id))) EXPECT_EQ(value, round_to(bf16, value));
}

// A cast of an epilogue's operand rounds too: a post-op reads the operand's integers only if the cast changes none of them.
TEST(QuantizedProduct, ACastOfAnOperandBehindItRounds) {
  const auto step_count = [](float scale) {
    GraphBuilder g;
    const uint64_t weights = g.input(s8, {96, 70});
    const uint64_t a = dequantized(g, {{40, 96}, u8, {1.f}}, bf16, g.input(u8, {40, 96}));
    const uint64_t b = dequantized(g, {{96, 70}, s8, {1.f}}, bf16, weights);
    const uint64_t other = dequantized(g, {{40, 70}, u8, {scale}, 3}, bf16, g.input(u8, {40, 70}));
    const uint64_t sum = g.op(OpKind::Add, {g.op(OpKind::MatMul, {a, b}), other});
    g.op(OpKind::TypeCast, {sum}, {}, f32);
    // The weights are zeros: the sum equals the operand after the cast.
    const Buffer zeros = buffer_for(g.tensor(weights));
    return expect_library_matches_reference(g.finish(), 0, {{weights, zeros}}).info.kernels.size();
  };
  const size_t rounded = step_count(0.3f), exact = step_count(0.25f);
  if (!applies_post_ops()) return;
  EXPECT_EQ(exact, 1u);
  EXPECT_GT(rounded, exact);
}

// 1 / scale is infinite: a library that multiplies by it turns 0 into NaN.
TEST(QuantizedProduct, IsQuantizedBySubnormalScales) {
  GraphBuilder g;
  const uint64_t a = dequantized(g, {{40, 96}, u8, {0.1f}, 3}, f32, g.input(u8, {40, 96}));
  const uint64_t b = dequantized(g, {{96, 70}}, f32, g.input(s8, {96, 70}));
  const uint64_t relu = g.op(OpKind::ReLU, {g.op(OpKind::MatMul, {a, b})});  // half of the elements are 0
  g.op(OpKind::Quantize, {relu},
       {{"scales", std::vector<float>{1e-39f}}, {"zps", std::vector<int64_t>{9}}, {"qtype", std::string("per_tensor")}}, u8);
  expect_library_matches_reference(g.finish(), 0);
}

// These scales cannot be factored out, or would be applied in f32 instead of f64: the factors are dequantised first.
TEST(QuantizedProduct, OthersAreDequantized) {
  for (const Case& c : {Case{.weights = {{96, 70}, s8, ramp(96), 0, 0}}, Case{.src = {{40, 96}, u8, ramp(96), 0, 1}},
                        Case{.dtype = DataType::f64}}) {
    const LibraryRun run = expect_library_matches_reference(product(c), 4e-6);
    EXPECT_THAT(run.info.kernels, Contains(HasSubstr("dequantize")));
  }
}

TEST(QuantizedProduct, WhatOthersReadIsDequantized) {
  GraphBuilder g;
  const uint64_t src = dequantized(g, {{40, 96}}, f32, g.input(s8, {40, 96}));
  const uint64_t weights = dequantized(g, {{96, 70}}, f32, g.input(s8, {96, 70}));
  g.op(OpKind::MatMul, {src, weights});
  g.op(OpKind::Abs, {weights});
  const LibraryRun run = expect_library_matches_reference(g.finish(), 4e-6);
  EXPECT_THAT(run.info.kernels, Contains(HasSubstr("dequantize")));
}

// softmax(q x k) x v of u8, with the probabilities rounded to u8: the attention of quantised models.
TEST(QuantizedProduct, OfWhatWasQuantizedInFrontOfIt) {
  for (const DataType type : {f32, bf16}) {
    GraphBuilder g;
    const Dims queries{2, 3, 80, 32}, keys{2, 3, 32, 96}, values{2, 3, 96, 48};
    const uint64_t q = dequantized(g, {queries, u8, {0.002f}, 134}, type, g.input(u8, queries));
    const uint64_t k = dequantized(g, {keys, u8, {0.02f}, 128}, type, g.input(u8, keys));
    uint64_t p = g.op(OpKind::SoftMax, {g.op(OpKind::MatMul, {q, k})}, {{"axis", int64_t{-1}}});
    if (type != f32) p = g.op(OpKind::TypeCast, {p}, {}, f32);
    const Attributes by_256{
        {"scales", std::vector<float>{0.004f}}, {"zps", std::vector<int64_t>{0}}, {"qtype", std::string("per_tensor")}};
    const uint64_t rounded = g.op(OpKind::Quantize, {p}, by_256, u8);
    const uint64_t v = dequantized(g, {values, u8, {0.04f}, 130}, type, g.input(u8, values));
    g.op(OpKind::MatMul, {dequantized(g, {{2, 3, 80, 96}, u8, {0.004f}}, type, rounded), v});
    // A score that rounds in the other direction changes sums by one quantisation step of the probabilities.
    const LibraryRun run = expect_library_matches_reference(g.finish(), type == f32 ? 0.02 : 0.06);
    EXPECT_THAT(run.info.kernel_texts, Contains(HasSubstr("tile of ")));
    EXPECT_THAT(run.info.kernels, Not(Contains(HasSubstr("dequantize"))));
  }
}

// ---- epilogues

// A product of [.., m, k] and [k, n] whose consumer has another operand of that shape.
void expect_one_step(const Dims& src, int64_t n, const Dims& operand, DataType operand_type = f32) {
  SCOPED_TRACE(join(describe(src), " n ", n, " operand ", describe(operand), " ", name_of(operand_type)));
  GraphBuilder g;
  const int64_t k = src.back();
  const uint64_t a = dequantized(g, {src, u8, {0.1f}, 3}, f32, g.input(u8, src));
  const Dims weights{k, n};
  const uint64_t b = dequantized(g, {weights}, f32, g.input(s8, weights));
  const uint64_t dst = g.op(OpKind::MatMul, {a, b});
  uint64_t other = g.input(operand_type, operand);
  if (operand_type != f32) other = dequantized(g, {operand, operand_type, {0.3f}, 0}, f32, other);
  g.op(OpKind::Add, {dst, other});
  const LibraryRun run = expect_library_matches_reference(g.finish(), 4e-6);
  if (!applies_post_ops()) return;
  EXPECT_EQ(run.info.kernels.size(), 1u) << ::testing::PrintToString(run.info.kernels);
}

TEST(QuantizedProduct, TakesOperandsOfWhatFollows) {
  for (const int64_t m : {1, 7, 33, 300}) {
    for (const int64_t n : {1, 5, 64, 200}) {
      expect_one_step({m, 40}, n, {m, n});
      expect_one_step({m, 40}, n, {n});
      expect_one_step({m, 40}, n, {1});
      expect_one_step({m, 40}, n, {m, n}, s8);
    }
  }
  for (const Dims& operand : {Dims{3, 9, 20}, Dims{20}, Dims{1, 1, 20}, Dims{1, 1, 1}})
    expect_one_step({3, 9, 16}, 20, operand);
}

TEST(QuantizedProduct, IsQuantizedAgain) {
  for (const DataType as : {u8, s8}) {
    for (const int64_t zero_point : {0, 9}) {
      for (const float scale : {1.f, 0.5f, 0.01f}) {  // the last one saturates
        GraphBuilder g;
        const Dims shape{40, 96};
        const uint64_t a = dequantized(g, {shape, u8, {0.1f}, 3}, f32, g.input(u8, shape));
        const uint64_t b = dequantized(g, {{96, 70}}, f32, g.input(s8, {96, 70}));
        const uint64_t relu = g.op(OpKind::ReLU, {g.op(OpKind::MatMul, {a, b, g.input(f32, {70})})});
        g.op(OpKind::Quantize, {relu},
             {{"scales", std::vector<float>{scale}},
              {"zps", std::vector<int64_t>{zero_point}},
              {"qtype", std::string("per_tensor")}},
             as);
        // A result near the middle between two integers may differ by one.
        const LibraryRun run = expect_library_matches_reference(g.finish(), 0.02);
        EXPECT_TRUE(!applies_post_ops() || run.info.kernels.size() == 1u);
      }
    }
  }
}

}  // namespace
}  // namespace lamina::testing
