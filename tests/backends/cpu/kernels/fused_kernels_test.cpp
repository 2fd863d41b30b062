// Chains of ops and their number of kernels; and ops that need several kernels.
#include <gtest/gtest.h>

#include "backends/cpu/support/cpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f64 = DataType::f64;

DataType statistics_type(DataType src) { return src == f64 ? f64 : f32; }

// r, x -> Add -> LayerNorm -> GELU -> Quantize
TEST(FusedKernels, ResidualNormActivationQuantizeIsOneKernel) {
  GraphBuilder g;
  const auto x = g.input(f32, {37, 200});
  const auto r = g.input(f32, {37, 200});
  const auto sum = g.op(OpKind::Add, {x, r});
  const auto y = g.op(OpKind::LayerNorm, {sum, g.input(f32, {200}), g.input(f32, {200})}, {{"keep_stats", false}});
  const auto z = g.op(OpKind::GELU, {y});
  g.op(OpKind::Quantize, {z}, {{"scales", std::vector<float>{0.05F}}, {"zps", std::vector<int64_t>{10}}}, DataType::u8);
  g.output(sum);
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

// dy -> ReLUBackward -> LayerNormBackward -> Add
TEST(FusedKernels, ActivationGradientNormGradientAddIsOneKernel) {
  GraphBuilder g;
  const auto y = g.input(f32, {130, 96});
  const auto dy = g.input(f32, {130, 96});
  const auto x = g.input(f32, {130, 96});
  const auto d = g.op(OpKind::ReLUBackward, {y, dy});
  const auto grads = g.multi(OpKind::LayerNormBackward, {x, d, g.input(f32, {130}), g.input(f32, {130}), g.input(f32, {96})},
                             {}, {f32, f32, f32});
  g.op(OpKind::Add, {grads[0], g.input(f32, {130, 96})});
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), 64));
}

// The gradient of LayerNorm(x) * (1 + scale) + shift, with a scale and a shift per entry of the batch: sums over the rows of
// each entry, and over all rows, in the walk over x and diff_dst that computes diff_src.
Graph gradient_of_modulated_norm(DataType dtype, const Dims& rows, int64_t width, int64_t entry_axis, bool sums_all) {
  GraphBuilder g;
  const DataType stats = statistics_type(dtype);
  Dims shape = rows, condition(rows.size() + 1, 1);
  shape.push_back(width);
  condition.back() = width;
  condition[static_cast<size_t>(entry_axis)] = rows[static_cast<size_t>(entry_axis)];
  std::vector<int64_t> others, all;
  for (int64_t axis = 0; axis < static_cast<int64_t>(rows.size()); ++axis) {
    all.push_back(axis);
    if (axis != entry_axis) others.push_back(axis);
  }
  const auto x = g.input(dtype, shape), dy = g.input(dtype, shape), normed = g.input(dtype, shape);
  const auto diff = g.op(OpKind::Multiply, {dy, g.input(dtype, condition)});
  g.multi(OpKind::LayerNormBackward, {x, diff, g.input(stats, rows), g.input(stats, rows)}, {{"use_affine", false}}, {dtype});
  const auto slope = g.op(OpKind::Multiply, {dy, normed});
  g.op(OpKind::ReduceSum, {slope}, {{"axes", others}, {"keep_dims", true}});
  g.op(OpKind::ReduceSum, {dy}, {{"axes", others}});
  if (sums_all) g.op(OpKind::ReduceSum, {diff}, {{"axes", all}});
  return g.finish();
}

TEST(FusedKernels, SumsOverTheRowsOfEachEntryAreOneKernelWithTheNorm) {
  for (const DataType dtype : {f32, bf16, f64}) {
    for (const Dims& rows : {Dims{3, 64}, Dims{3, 130}, Dims{5, 7}, Dims{2, 3, 70}})
      expect_one_kernel(expect_cpu_matches_reference(gradient_of_modulated_norm(dtype, rows, 96, 0, rows[1] == 130), 256));
  }
}

// Rows with the entry as their last dim, and rows of a thousand elements that threads share.
TEST(FusedKernels, EntriesOfColumnSumsAreAnyOuterDim) {
  expect_one_kernel(expect_cpu_matches_reference(gradient_of_modulated_norm(f32, {70, 3}, 40, 1, true), 256));
  expect_one_kernel(expect_cpu_matches_reference(gradient_of_modulated_norm(f32, {4, 70, 3}, 40, 1, true), 256));
  expect_one_kernel(expect_cpu_matches_reference(gradient_of_modulated_norm(f32, {3, 5}, 20000, 0, true), 256));
}

TEST(FusedKernels, EntriesWithoutRowsHaveSumsOfZero) {
  expect_one_kernel(expect_cpu_matches_reference(gradient_of_modulated_norm(f32, {3, 0}, 40, 0, true)));
  expect_one_kernel(expect_cpu_matches_reference(gradient_of_modulated_norm(f32, {0, 3}, 40, 0, true)));
}

// Values shared by all rows are precomputed, here along rows of two dims.
TEST(FusedKernels, SharedValuesOfRowsOfSeveralDims) {
  for (const DataType dtype : {f32, f64}) {
    GraphBuilder g;
    std::vector<uint64_t> inputs{g.input(dtype, {4, 8, 4, 33})};
    for (int i = 0; i < 4; ++i) inputs.push_back(g.input(dtype, {33}));
    const auto y = g.op(OpKind::BatchNormInference, inputs, {{"epsilon", 0.5F}, {"data_format", std::string("NXC")}});
    g.op(OpKind::ReduceL1, {y}, {{"axes", std::vector<int64_t>{1, 3}}});
    EXPECT_EQ(expect_cpu_matches_reference(g.finish()).kernels_per_partition, std::vector<size_t>{2});
  }
}

// Rows of one element: the moments are computed from a per-row value.
TEST(FusedKernels, MomentsOfOneElement) {
  for (const Dims& shape : {Dims{1}, Dims{5, 1}, Dims{70, 1}}) {
    GraphBuilder g;
    const auto x = g.op(OpKind::Swish, {g.input(f32, shape)});
    const auto d = g.op(OpKind::SoftMaxBackward, {g.input(f32, shape), x}, {{"axis", int64_t{-1}}});
    const auto y = g.op(OpKind::RMSNorm, {d, g.input(f32, {1})});
    g.multi(OpKind::LayerNormBackward, {x, g.input(f32, shape), g.input(f32, {1})}, {{"use_stats", false}}, {f32, f32});
    g.output(y);
    expect_cpu_matches_reference(g.finish());
  }
}

// Eight rows fill half a register; a power is computed in f64.
TEST(FusedKernels, PowerAcrossFewRows) {
  GraphBuilder g;
  const auto x = g.op(OpKind::BiasAdd, {g.input(bf16, {8, 3}, {1, 8}), g.input(bf16, {3})});
  const auto y = g.op(OpKind::PReLU, {x, g.input(bf16, {3})});
  g.op(OpKind::Pow, {g.op(OpKind::Abs, {y})}, {{"beta", 0.9F}});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

// The kernel compares a magnitude, or a negated value, with a constant.
TEST(FusedKernels, BoundsOfMagnitudes) {
  for (const OpKind kind : {OpKind::ReLU, OpKind::SoftPlus, OpKind::Mish, OpKind::HardSigmoid, OpKind::HardSwish}) {
    for (const DataType dtype : {f32, bf16, f64}) {
      SCOPED_TRACE(join(name_of(kind), ' ', name_of(dtype)));
      GraphBuilder g;
      const bool is_line = kind == OpKind::HardSigmoid;
      g.op(kind, {g.op(OpKind::Abs, {g.input(dtype, {5, 37})})},
           is_line ? Attributes{{"alpha", 0.2F}, {"beta", 0.0F}} : Attributes{});
      expect_one_kernel(expect_cpu_matches_reference(g.finish()));
    }
  }
}

TEST(FusedKernels, GroupNormInBothFormats) {
  for (const auto& [format, shape] : std::vector<std::pair<std::string, Dims>>{{"NCX", {2, 6, 5, 7}}, {"NXC", {2, 5, 7, 6}}}) {
    for (const DataType dtype : {f32, bf16}) {
      GraphBuilder g;
      const auto x = g.input(dtype, shape);
      const Attributes attributes = {{"groups", int64_t{3}}, {"data_format", format}};
      const auto y = g.multi(OpKind::GroupNorm, {x, g.input(f32, {6}), g.input(f32, {6})}, attributes, {dtype, f32, f32});
      g.op(OpKind::ReLU, {y[0]});
      expect_one_kernel(expect_cpu_matches_reference(g.finish()));
    }
  }
}

struct GroupShape {
  std::string format;
  Dims shape;
};

std::vector<GroupShape> group_shapes() {
  return {{"NCX", {2, 6, 5, 7}}, {"NXC", {2, 5, 7, 6}}, {"NCX", {5, 6}},      {"NXC", {130, 6}},
          {"NCX", {1, 6, 65}},   {"NXC", {1, 70, 6}},   {"NCX", {3, 6, 8, 9}}};
}

// The sums per channel cross the rows of the groups: they need a second walk or a kernel that adds the sums of segments,
// unless they only sum over the batch, or are the segments of one sample.
TEST(FusedKernels, GroupNormBackwardSumsSegmentsOrWalksTwice) {
  for (const auto& [format, shape] : group_shapes()) {
    for (const DataType dtype : {f32, bf16, f64}) {
      for (const bool use_stats : {false, true}) {
        SCOPED_TRACE(join(format, " ", describe(shape), " ", name_of(dtype), " use_stats ", use_stats));
        GraphBuilder g;
        const DataType weights = statistics_type(dtype);
        std::vector<uint64_t> inputs{g.input(dtype, shape), g.input(dtype, shape)};
        if (use_stats) inputs.insert(inputs.end(), {g.input(weights, {shape[0], 3}), g.input(weights, {shape[0], 3})});
        inputs.push_back(g.input(weights, {6}));
        const Attributes attributes{
            {"groups", int64_t{3}}, {"data_format", format}, {"use_stats", use_stats}, {"epsilon", 0.1F}};
        g.multi(OpKind::GroupNormBackward, inputs, attributes, {dtype, weights, weights});
        const bool is_one = shape.size() == 2 || (format == "NCX" && shape == Dims{1, 6, 65});
        EXPECT_EQ(expect_cpu_matches_reference(g.finish(), 64).kernels_per_partition, std::vector<size_t>{is_one ? 1u : 2u});
      }
    }
  }
}

TEST(FusedKernels, GroupNormBackwardComputesWhatIsAskedFor) {
  for (const auto& [outputs, kernels] :
       std::vector<std::pair<std::vector<DataType>, size_t>>{{{f32}, 1},
                                                             {{DataType::undef, f32}, 1},
                                                             {{DataType::undef, DataType::undef, f32}, 1},
                                                             {{f32, DataType::undef, f32}, 2}}) {
    GraphBuilder g;
    const Attributes attributes{{"groups", int64_t{2}}, {"data_format", std::string("NCX")}};
    const auto x = g.input(f32, {3, 4, 9});
    const auto dy = g.input(f32, {3, 4, 9});
    g.multi(OpKind::GroupNormBackward, {x, dy, g.input(f32, {3, 2}), g.input(f32, {3, 2}), g.input(f32, {4})}, attributes,
            outputs);
    EXPECT_EQ(expect_cpu_matches_reference(g.finish(), 64).kernels_per_partition, std::vector<size_t>{kernels});
  }
}

// The first kernel computes the inputs of the second walk: dy -> ReLUBackward -> GroupNormBackward -> Add
TEST(FusedKernels, GroupNormBackwardBetweenElementwiseOps) {
  GraphBuilder g;
  const Dims shape{2, 6, 5, 7};
  const auto d = g.op(OpKind::ReLUBackward, {g.input(f32, shape), g.input(f32, shape)});
  const Attributes attributes{{"groups", int64_t{3}}, {"data_format", std::string("NCX")}, {"use_stats", false}};
  const auto grads =
      g.multi(OpKind::GroupNormBackward, {g.input(f32, shape), d, g.input(f32, {6})}, attributes, {f32, f32, f32});
  g.op(OpKind::Add, {grads[0], g.input(f32, shape)});
  EXPECT_EQ(expect_cpu_matches_reference(g.finish(), 64).kernels_per_partition, std::vector<size_t>{2});
}

TEST(FusedKernels, SoftMaxOfMaskedRows) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 50});
  g.multi(OpKind::SoftMax, {x}, {{"axis", int64_t{1}}, {"mode", std::string("inf_as_zero")}}, {f32, f32});
  const Graph graph = g.finish();
  Buffer data = buffer_for(graph.tensor(0));
  for (int i = 0; i < 200; ++i) store_from_double(f32, data.data(), i, i < 100 || i % 3 == 0 ? -INFINITY : i * 0.1);
  expect_cpu_matches_reference(graph, 8, 1, {{graph.tensor(0).id, data}});
}

TEST(FusedKernels, DequantizeSelectAndPerChannelQuantize) {
  GraphBuilder g;
  const auto q = g.input(DataType::s8, {3, 8, 9});
  const auto x =
      g.op(OpKind::Dequantize, {q}, {{"scales", std::vector<float>(8, 0.5F)}, {"qtype", std::string("per_channel")}}, f32);
  const auto c = g.op(OpKind::GreaterEqual, {x, g.input(f32, {9})}, {}, DataType::boolean);
  const auto s = g.op(OpKind::Select, {c, x, g.input(f32, {})}, {}, f32);
  const std::vector<float> scales = {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F};
  g.op(OpKind::Quantize, {s}, {{"scales", scales}, {"qtype", std::string("per_channel")}}, DataType::s8);
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST(FusedKernels, ReshapeWithoutCommonDims) {
  for (const bool dense : {true, false}) {
    GraphBuilder g;
    const auto x = dense ? g.input(f32, {6, 4}) : g.input(f32, {6, 4}, {9, 2});
    const auto y = g.op(OpKind::StaticReshape, {x}, {{"shape", std::vector<int64_t>{4, 6}}, {"special_zero", false}});
    if (!dense) {
      g.tensor(y).layout = LayoutType::strided;
      g.tensor(y).shape = Dims{4, 6};
      g.tensor(y).strides = {1, 7};
    }
    EXPECT_EQ(expect_cpu_matches_reference(g.finish()).kernels_per_partition, std::vector<size_t>{dense ? 1U : 2U});
  }
}

// The code cache uses the structure as key: an operand per row and an operand for all rows have different structures.
TEST(FusedKernels, BroadcastOverRowsIsNotTakenForAValuePerRow) {
  for (const Dims& scale : {Dims{1, 1}, Dims{37, 1}, Dims{1, 20}, Dims{37, 20}}) {
    GraphBuilder g;
    const auto x = g.input(f32, {37, 20}), y = g.input(f32, scale);
    g.op(OpKind::SoftMax, {g.op(OpKind::Multiply, {x, y})}, {{"axis", int64_t{1}}});
    expect_one_kernel(expect_cpu_matches_reference(g.finish()));
  }
}

TEST(FusedKernels, DropoutDrawsTheReferencesNumbers) {
  GraphBuilder g;
  const auto x = g.input(f32, {7, 33});
  g.multi(OpKind::Dropout, {x, g.scalar(DataType::s64), g.scalar(DataType::s64), g.scalar(f32)}, {}, {f32, DataType::u8});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST(FusedKernels, DropoutOfAPartDrawsTheReferencesNumbers) {
  GraphBuilder g;
  const auto s64 = DataType::s64;
  g.multi(OpKind::Dropout, {g.input(f32, {3, 7, 33}), g.scalar(s64), g.scalar(s64), g.scalar(f32), g.scalar(s64)},
          {{"steps", std::vector<int64_t>{5000, 100, 1}}}, {f32, DataType::u8});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

// Multiply scalar -> LayerNorm -> Select (a scalar if the condition is false) -> DynamicQuantize with a scalar scale and zero
// point
TEST(FusedKernels, HostScalarsScaleFillAndQuantize) {
  GraphBuilder g;
  const auto x = g.op(OpKind::Multiply, {g.input(f32, {7, 33}), g.scalar(f32)});
  const auto y = g.op(OpKind::LayerNorm, {x, g.input(f32, {33}), g.input(f32, {33})}, {{"keep_stats", false}});
  const auto z = g.op(OpKind::Select, {g.input(DataType::boolean, {7, 33}), y, g.scalar(f32)}, {}, f32);
  g.op(OpKind::DynamicQuantize, {z, g.scalar(f32), g.scalar(DataType::s32)}, {}, DataType::s8);
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

}  // namespace
}  // namespace lamina::testing
