// Products with weights of few bits: each tile dequantises its groups of weights, with the same values as separate steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cpu/library/library_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;

struct Case {
  DataType dtype = DataType::s8, as = f32;
  int64_t heads = 16, queries = 32, width = 64, keys = 96;
  Dims group{1, 1, 32, 1};
  bool has_zero_points = true;
};

// relu(q x dequantised k).
Graph graph_of(const Case& c) {
  GraphBuilder g;
  const Dims keys{2, c.heads, c.width, c.keys};
  Dims groups;
  for (size_t axis = 0; axis < keys.size(); ++axis) groups.push_back(keys[axis] / c.group[axis]);
  std::vector<uint64_t> inputs{g.input(c.dtype, keys), g.input(c.as, groups)};
  if (c.has_zero_points) inputs.push_back(g.input(c.dtype, groups));
  const uint64_t k =
      g.op(OpKind::DynamicDequantize, inputs, {{"qtype", std::string("per_group")}, {"group_shape", c.group}}, c.as);
  const uint64_t scores = g.op(OpKind::MatMul, {g.input(c.as, {2, c.heads, c.queries, c.width}), k});
  g.op(OpKind::ReLU, {scores});
  return g.finish();
}

void expect_in_a_tile(const Case& c, double error) {
  SCOPED_TRACE(join(name_of(c.dtype), " as ", name_of(c.as), ", groups ", describe(c.group)));
  const LibraryRun run = expect_library_matches_reference(graph_of(c), error);
  EXPECT_THAT(run.info.kernel_texts, Contains(HasSubstr("tile of ")));
}

TEST(DequantizedWeights, OfAnyTypeAndGroup) {
  for (const DataType dtype : {DataType::s8, DataType::u8, DataType::s4, DataType::u4}) {
    for (const Dims& group : {Dims{1, 1, 32, 1}, Dims{1, 1, 1, 32}, Dims{1, 1, 64, 96}, Dims{1, 1, 16, 8}, Dims{1, 1, 1, 1}})
      expect_in_a_tile({.dtype = dtype, .group = group}, 1e-5);
    expect_in_a_tile({.dtype = dtype, .has_zero_points = false}, 1e-5);
    expect_in_a_tile({.dtype = dtype, .as = bf16}, 2e-2);
    expect_in_a_tile({.dtype = dtype, .as = f16}, 4e-3);
  }
}

// One query; then several blocks of queries, each of which dequantises the weights again.
TEST(DequantizedWeights, OfAnyNumberOfRows) {
  expect_in_a_tile({.queries = 1}, 1e-5);
  expect_in_a_tile({.dtype = DataType::s4, .queries = 1, .keys = 101, .group = {1, 1, 32, 1}}, 1e-5);
  expect_in_a_tile({.dtype = DataType::u8, .queries = 300, .keys = 256}, 1e-5);
}

TEST(DequantizedWeights, OfTheFormatsOfEightBits) {
  for (const DataType dtype : {DataType::f8_e4m3, DataType::f8_e5m2}) {
    for (const DataType as : {f32, bf16}) {
      GraphBuilder g;
      const auto factor = [&](const Dims& shape) {
        const uint64_t value = g.op(OpKind::Dequantize, {g.input(dtype, shape)},
                                    {{"scales", std::vector<float>{0.05f}}, {"qtype", std::string("per_tensor")}}, f32);
        return as == f32 ? value : g.op(OpKind::TypeCast, {value}, {}, as);
      };
      const uint64_t scores = g.op(OpKind::MatMul, {factor({2, 8, 40, 64}), factor({2, 8, 64, 96})});
      g.op(OpKind::ReLU, {scores});
      expect_library_matches_reference(g.finish(), as == f32 ? 1e-5 : 2e-2);
    }
  }
}

}  // namespace
}  // namespace lamina::testing
