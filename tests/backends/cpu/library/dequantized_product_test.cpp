// Graphs in which a product dequantises its weights itself: every form of the scales, roundings, tiles, constant weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "backends/cpu/library/library_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, s4 = DataType::s4, u4 = DataType::u4,
                   s8 = DataType::s8, u8 = DataType::u8;

struct Case {
  DataType dtype = s4, as = f32;
  int64_t rows = 3, k = 128, n = 80;
  Dims group = {};  // per_group; along n and k if transposed, else along k and n
  std::string qtype = "per_group";
  int64_t axis = 0;
  bool transposed = true, has_zero_points = false, is_constant = false, has_bias = false, has_norm = false;
};

struct Built {
  Graph graph;
  uint64_t src, values, scales, zero_points, dst;
};

Dims scales_of(const Case& c, const Dims& shape) {
  if (c.qtype == "per_tensor") return {1};
  if (c.qtype == "per_channel") return {shape[static_cast<size_t>(c.axis)]};
  return {shape[0] / c.group[0], shape[1] / c.group[1]};
}

// [LayerNorm ──] MatMul(src, dequantised weights)
Built built(const Case& c) {
  GraphBuilder g;
  Built made{{}, kNoTensor, kNoTensor, kNoTensor, kNoTensor, kNoTensor};
  const Dims shape = c.transposed ? Dims{c.n, c.k} : Dims{c.k, c.n}, scales = scales_of(c, shape);
  const auto operand = [&](DataType dtype, const Dims& of) {
    return c.is_constant ? g.constant(dtype, of) : g.input(dtype, of);
  };
  made.values = operand(c.dtype, shape), made.scales = operand(c.as, scales);
  std::vector<uint64_t> inputs{made.values, made.scales};
  if (c.has_zero_points) inputs.push_back(made.zero_points = operand(c.dtype, scales));
  Attributes attributes{{"qtype", c.qtype}, {"axis", c.axis}};
  if (c.qtype == "per_group") attributes["group_shape"] = c.group;
  const uint64_t weights = g.op(OpKind::DynamicDequantize, inputs, attributes, c.as);
  made.src = g.input(c.as, {2, c.rows, c.k});
  const uint64_t read = c.has_norm ? g.op(OpKind::RMSNorm, {made.src, g.input(c.as, {c.k})}) : made.src;
  std::vector<uint64_t> factors{read, weights};
  if (c.has_bias) factors.push_back(g.input(c.as, {c.n}));
  made.dst = g.op(OpKind::MatMul, factors, {{"transpose_b", c.transposed}});
  made.graph = g.finish();
  return made;
}

LibraryRun expect_dequantised_by_the_product(const Case& c, const std::map<uint64_t, Buffer>& given = {}) {
  SCOPED_TRACE(join(name_of(c.dtype), " as ", name_of(c.as), ", ", c.qtype, " ", describe(c.group), ", ", c.rows, " rows"));
  const double error = c.as == f32 ? 1e-5 : c.as == f16 ? 2e-3 : 1e-2;
  LibraryRun run = expect_library_matches_reference(built(c).graph, error, given);
  EXPECT_THAT(run.info.kernels, Contains(HasSubstr(join("product by ", name_of(c.dtype)))));
  return run;
}

TEST(DequantizedProduct, OfEveryTypeAndGroup) {
  for (const DataType dtype : {s4, u4, s8, u8}) {
    for (const Dims& group : {Dims{1, 32}, Dims{1, 128}, Dims{80, 128}, Dims{8, 16}, Dims{1, 1}})
      expect_dequantised_by_the_product({.dtype = dtype, .group = group, .has_zero_points = group[1] == 32});
    expect_dequantised_by_the_product({.dtype = dtype, .group = {64, 1}, .transposed = false, .has_bias = true});
    for (const DataType as : {bf16, f16})
      expect_dequantised_by_the_product(
          {.dtype = dtype, .as = as, .group = {1, 64}, .has_zero_points = true, .has_bias = true});
  }
}

TEST(DequantizedProduct, OfEveryFormOfScales) {
  for (const bool transposed : {false, true}) {
    expect_dequantised_by_the_product({.qtype = "per_tensor", .transposed = transposed, .has_zero_points = true});
    for (const int64_t axis : {0, 1})
      expect_dequantised_by_the_product({.dtype = s8, .qtype = "per_channel", .axis = axis, .transposed = transposed});
  }
}

TEST(DequantizedProduct, OfScalesInAttributes) {
  for (const auto& [qtype, count] : std::vector<std::pair<std::string, size_t>>{{"per_tensor", 1}, {"per_channel", 70}}) {
    for (const DataType as : {f32, bf16}) {
      GraphBuilder g;
      std::vector<float> scales;
      std::vector<int64_t> zero_points;
      for (size_t i = 0; i < count; ++i)
        scales.push_back(0.01F * static_cast<float>(i + 1)), zero_points.push_back(100 + static_cast<int64_t>(i));
      uint64_t weights = g.op(OpKind::Dequantize, {g.input(u8, {64, 70})},
                              {{"qtype", qtype}, {"axis", int64_t{1}}, {"scales", scales}, {"zps", zero_points}}, f32);
      if (as != f32) weights = g.op(OpKind::TypeCast, {weights}, {}, as);
      g.op(OpKind::MatMul, {g.input(as, {5, 64}), weights});
      const LibraryRun run = expect_library_matches_reference(g.finish(), as == f32 ? 1e-5 : 1e-2);
      EXPECT_THAT(run.info.kernels, Contains(HasSubstr("product by u8")));
    }
  }
}

// Integers with an axis for the groups, which a reshape joins to that of k.
TEST(DequantizedProduct, OfIntegersWithAnAxisOfGroups) {
  for (const bool transposed : {false, true}) {
    for (const DataType as : {f32, bf16}) {
      GraphBuilder g;
      const Dims divided = transposed ? Dims{80, 4, 32} : Dims{4, 32, 80},
                 groups = transposed ? Dims{80, 4, 1} : Dims{4, 1, 80};
      const Dims group = transposed ? Dims{1, 1, 32} : Dims{1, 32, 1};
      const uint64_t parts = g.op(OpKind::DynamicDequantize, {g.input(s8, divided), g.input(as, groups), g.input(s8, groups)},
                                  {{"qtype", std::string("per_group")}, {"group_shape", group}}, as);
      const Dims shape = transposed ? Dims{80, 128} : Dims{128, 80};
      const uint64_t weights = g.op(OpKind::StaticReshape, {parts}, {{"shape", shape}, {"special_zero", false}});
      g.op(OpKind::MatMul, {g.input(as, {3, 128}), weights}, {{"transpose_b", transposed}});
      const LibraryRun run = expect_library_matches_reference(g.finish(), as == f32 ? 1e-5 : 1e-2);
      EXPECT_THAT(run.info.kernels, ElementsAre(HasSubstr("product by s8 in groups of 32 x 1")));
    }
  }
}

// Rows of the integers are not one after the other, so no matrix has these strides.
TEST(DequantizedProduct, NotOfIntegersWhoseAxesCannotBeJoined) {
  GraphBuilder g;
  const uint64_t integers = g.input(s8, {80, 4, 32}, {4 * 48, 48, 1});
  const uint64_t parts = g.op(OpKind::DynamicDequantize, {integers, g.input(f32, {80, 4, 1})},
                              {{"qtype", std::string("per_group")}, {"group_shape", Dims{1, 1, 32}}}, f32);
  const uint64_t weights = g.op(OpKind::StaticReshape, {parts}, {{"shape", Dims{80, 128}}, {"special_zero", false}});
  g.op(OpKind::MatMul, {g.input(f32, {3, 128}), weights}, {{"transpose_b", true}});
  const LibraryRun run = expect_library_matches_reference(g.finish(), 1e-5);
  EXPECT_THAT(run.info.kernels, Not(Contains(HasSubstr("product by s8"))));
}

// The bits of the chain over dequantised weights.
TEST(DequantizedProduct, IsTheChainOfMultiplyAdds) {
  const Case c{.group = {1, 32}, .has_zero_points = true};
  const Built made = built(c);
  const LibraryRun run = expect_dequantised_by_the_product(c);
  std::map<uint64_t, std::vector<double>> of;
  for (const auto* tensors : {&run.inputs, &run.outputs})
    for (const LogicalTensor& tensor : *tensors) of[tensor.id] = elements(tensor, run.buffers.at(tensor.id));
  for (int64_t row = 0; row < 2 * c.rows; ++row) {
    for (int64_t column = 0; column < c.n; ++column) {
      float sum = 0;
      for (int64_t k = 0; k < c.k; ++k) {
        const auto group = static_cast<size_t>(column * (c.k / 32) + k / 32);
        const auto value =
            static_cast<float>(of[made.values][static_cast<size_t>(column * c.k + k)] - of[made.zero_points][group]);
        sum = std::fma(static_cast<float>(of[made.src][static_cast<size_t>(row * c.k + k)]),
                       value * static_cast<float>(of[made.scales][group]), sum);
      }
      ASSERT_EQ(static_cast<float>(of[made.dst][static_cast<size_t>(row * c.n + column)]), sum) << row << ", " << column;
    }
  }
}

// ---- both factors of integers

struct IntegerCase {
  DataType rows = s8, dtype = s4, as = f32;
  int64_t m = 3, k = 128, n = 80, group = 32;
  bool has_zero_points = true, has_zero_points_of_rows = true, has_bias = false, is_constant = false;
  std::string qtype = "per_group";  // of the rows: "per_group" means one scale per row
};

struct IntegerProduct {
  Graph graph;
  uint64_t src, scales_of_rows, zero_points_of_rows, values, scales, zero_points, bias, dst;
};

IntegerProduct built(const IntegerCase& c) {
  GraphBuilder g;
  IntegerProduct made{{}, kNoTensor, kNoTensor, kNoTensor, kNoTensor, kNoTensor, kNoTensor, kNoTensor, kNoTensor};
  const Dims groups{c.n, c.k / c.group}, of_rows = c.qtype == "per_tensor" ? Dims{1} : Dims{2, c.m, 1};
  const auto operand = [&](DataType dtype, const Dims& of) {
    return c.is_constant ? g.constant(dtype, of) : g.input(dtype, of);
  };
  std::vector<uint64_t> weights{made.values = operand(c.dtype, {c.n, c.k}), made.scales = operand(c.as, groups)};
  if (c.has_zero_points) weights.push_back(made.zero_points = operand(c.dtype, groups));
  std::vector<uint64_t> rows{made.src = g.input(c.rows, {2, c.m, c.k}), made.scales_of_rows = g.input(c.as, of_rows)};
  if (c.has_zero_points_of_rows) rows.push_back(made.zero_points_of_rows = g.input(c.rows, of_rows));
  Attributes attributes{{"qtype", c.qtype}};
  if (c.qtype == "per_group") attributes["group_shape"] = Dims{1, 1, c.k};
  std::vector<uint64_t> factors{
      g.op(OpKind::DynamicDequantize, rows, attributes, c.as),
      g.op(OpKind::DynamicDequantize, weights, {{"qtype", std::string("per_group")}, {"group_shape", Dims{1, c.group}}}, c.as)};
  if (c.has_bias) factors.push_back(made.bias = g.input(c.as, {c.n}));
  made.dst = g.op(OpKind::MatMul, factors, {{"transpose_b", true}});
  made.graph = g.finish();
  return made;
}

LibraryRun expect_product_of_integers(const IntegerCase& c, const std::map<uint64_t, Buffer>& given = {}) {
  SCOPED_TRACE(join(name_of(c.rows), " by ", name_of(c.dtype), " as ", name_of(c.as), ", ", c.m, " x ", c.k, " x ", c.n,
                    ", groups of ", c.group, c.has_zero_points ? ", zero points" : "",
                    c.has_zero_points_of_rows ? ", zero points of rows" : ""));
  const double error = c.as == f32 ? 1e-5 : c.as == f16 ? 4e-3 : 2e-2;
  LibraryRun run = expect_library_matches_reference(built(c).graph, error, given);
  EXPECT_THAT(run.info.kernels, ElementsAre(HasSubstr(join("product of ", name_of(c.rows), " by ", name_of(c.dtype)))));
  return run;
}

TEST(ProductOfIntegers, OfEveryTypeAndZeroPoint) {
  for (const DataType rows : {s8, u8}) {
    for (const DataType dtype : {s4, u4, s8, u8}) {
      for (const int zero_points : {0, 1, 2, 3})
        expect_product_of_integers({.rows = rows,
                                    .dtype = dtype,
                                    .has_zero_points = (zero_points & 1) != 0,
                                    .has_zero_points_of_rows = (zero_points & 2) != 0,
                                    .has_bias = zero_points == 1});
    }
    for (const DataType as : {bf16, f16}) expect_product_of_integers({.rows = rows, .as = as, .has_bias = true});
  }
}

TEST(ProductOfIntegers, OfEveryExtent) {
  for (const int64_t m : {1, 2, 5, 17, 90}) expect_product_of_integers({.m = m, .n = 70});
  for (const int64_t group : {8, 12, 64, 128, 384, 520}) expect_product_of_integers({.k = 3 * group, .group = group});
  for (const int64_t group : {9, 20}) expect_product_of_integers({.dtype = s8, .k = 2 * group, .n = 3, .group = group});
  expect_product_of_integers({.qtype = "per_tensor"});
}

// kernels/integer_rows.h
TEST(ProductOfIntegers, SumsEachGroupExactly) {
  for (const bool is_constant : {false, true}) {
    const IntegerCase c{.rows = u8, .m = 7, .k = 256, .has_bias = true, .is_constant = is_constant};
    const IntegerProduct made = built(c);
    const LibraryRun run = expect_product_of_integers(c);
    std::map<uint64_t, std::vector<double>> of;
    for (const auto* tensors : {&run.inputs, &run.outputs})
      for (const LogicalTensor& tensor : *tensors) of[tensor.id] = elements(tensor, run.buffers.at(tensor.id));
    const auto at = [&](uint64_t id, int64_t element) { return of[id][static_cast<size_t>(element)]; };
    for (int64_t row = 0; row < 2 * c.m; ++row) {
      for (int64_t column = 0; column < c.n; ++column) {
        float sum = 0;
        for (int64_t group = 0; group < c.k / c.group; ++group) {
          const int64_t of_group = column * (c.k / c.group) + group;
          double exact = 0;
          for (int64_t k = group * c.group; k < (group + 1) * c.group; ++k)
            exact += (at(made.src, row * c.k + k) - at(made.zero_points_of_rows, row)) *
                     (at(made.values, column * c.k + k) - at(made.zero_points, of_group));
          sum = std::fma(static_cast<float>(exact), static_cast<float>(at(made.scales, of_group)), sum);
        }
        sum *= static_cast<float>(at(made.scales_of_rows, row));
        sum += static_cast<float>(at(made.bias, column));
        ASSERT_EQ(static_cast<float>(at(made.dst, row * c.n + column)), sum) << row << ", " << column;
      }
    }
  }
}

// Groups of fewer than 8 weights, and rows in parts that have their own scales, are dequantised.
TEST(ProductOfIntegers, NotOfSmallGroupsOrPartsOfRows) {
  const LibraryRun small = expect_library_matches_reference(built(IntegerCase{.dtype = s8, .group = 4}).graph, 1e-5);
  EXPECT_THAT(small.info.kernels, Contains(HasSubstr("product by s8")));
  GraphBuilder g;
  const uint64_t rows = g.op(OpKind::DynamicDequantize, {g.input(s8, {3, 64}), g.input(f32, {3, 2})},
                             {{"qtype", std::string("per_group")}, {"group_shape", Dims{1, 32}}}, f32);
  const uint64_t weights = g.op(OpKind::DynamicDequantize, {g.input(s4, {32, 64}), g.input(f32, {32, 2})},
                                {{"qtype", std::string("per_group")}, {"group_shape", Dims{1, 32}}}, f32);
  g.op(OpKind::MatMul, {rows, weights}, {{"transpose_b", true}});
  EXPECT_THAT(expect_library_matches_reference(g.finish(), 1e-5).info.kernels, Contains(HasSubstr("product by s4")));
}

TEST(DequantizedProduct, OfConstantWeightsHasTheSameBits) {
  for (const int64_t rows : {1, 40}) {
    Case c{.rows = rows, .group = {1, 32}, .has_zero_points = true};
    const uint64_t dst = built(c).dst;
    const LibraryRun given = expect_dequantised_by_the_product(c);
    c.is_constant = true;
    std::map<uint64_t, Buffer> same = given.buffers;
    same.erase(dst);
    EXPECT_TRUE(expect_dequantised_by_the_product(c, same).buffers.at(dst) == given.buffers.at(dst)) << rows;
  }
}

TEST(DequantizedProduct, InATileDequantisesThere) {
  const LibraryRun run =
      expect_dequantised_by_the_product({.rows = 600, .group = {1, 32}, .has_zero_points = true, .has_norm = true});
  EXPECT_THAT(run.info.kernel_texts, Contains(HasSubstr("tile of ")));
  expect_dequantised_by_the_product({.rows = 2, .group = {1, 32}, .has_norm = true});
}

// A product alone is no tile.
TEST(DequantizedProduct, AloneIsOneStep) {
  const LibraryRun run = expect_dequantised_by_the_product({.rows = 600, .group = {1, 32}});
  EXPECT_THAT(run.info.kernel_texts, Not(Contains(HasSubstr("tile of "))));
}

// What others read too is dequantised before.
TEST(DequantizedProduct, WithOtherReadersReadsFloats) {
  GraphBuilder g;
  const uint64_t weights = g.op(OpKind::DynamicDequantize, {g.input(s8, {64, 70}), g.input(f32, {1})}, {}, f32);
  g.op(OpKind::MatMul, {g.input(f32, {5, 64}), weights});
  g.output(weights);
  const LibraryRun run = expect_library_matches_reference(g.finish(), 1e-5);
  EXPECT_THAT(run.info.kernels, Not(Contains(HasSubstr("product by"))));
}

}  // namespace
}  // namespace lamina::testing
