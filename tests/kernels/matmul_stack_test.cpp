// MatMul's rules for ranks, transposes, broadcasts and strides, expressed as a stack of matrices.
#include "kernels/matmul_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using kernel::MatmulStack;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
constexpr DataType f32 = DataType::f32;

struct Case {
  Dims src, weights, bias = {};
  bool has_bias = false, transpose_a = false, transpose_b = false;
  Dims src_strides = {}, weights_strides = {};
};

MatmulStack stack_of(const Case& c) {
  GraphBuilder g;
  const auto src = g.input(f32, c.src, c.src_strides), weights = g.input(f32, c.weights, c.weights_strides);
  const uint64_t bias = c.has_bias ? g.input(f32, c.bias) : kNoTensor;
  g.op(OpKind::MatMul, {src, weights, bias}, {{"transpose_a", c.transpose_a}, {"transpose_b", c.transpose_b}});
  const Graph graph = with_strides(g.finish());
  kernel::LibraryStep step{graph.ops()[0], {}, {}, {}};
  for (const ValueIndex value : step.op.inputs)
    step.inputs.push_back(value == kNoValue ? LogicalTensor{} : graph.tensor(value));
  step.outputs.push_back(graph.tensor(step.op.outputs[0]));
  return kernel::matmul_stack(step);
}

// Returns rows and columns, then both strides.
Dims matrix(const kernel::MatrixStack& tensor) {
  return {tensor.rows, tensor.columns, tensor.row_stride, tensor.column_stride};
}

TEST(MatmulStack, BatchDimsBroadcast) {
  const MatmulStack stack = stack_of({.src = {2, 3, 4, 5}, .weights = {3, 5, 7}});
  EXPECT_THAT((Dims{stack.m, stack.n, stack.k}), ElementsAre(4, 7, 5));
  EXPECT_THAT(stack.batch, ElementsAre(2, 3));
  EXPECT_THAT(stack.src.batch_strides, ElementsAre(60, 20));
  EXPECT_THAT(stack.weights.batch_strides, ElementsAre(0, 35));
  EXPECT_THAT(stack.dst.batch_strides, ElementsAre(84, 28));
  EXPECT_EQ(stack.products(), 6);
}

TEST(MatmulStack, TransposesSwapRowsAndColumns) {
  const MatmulStack stack = stack_of({.src = {5, 4}, .weights = {7, 5}, .transpose_a = true, .transpose_b = true});
  EXPECT_THAT(matrix(stack.src), ElementsAre(4, 5, 1, 4));
  EXPECT_THAT(matrix(stack.weights), ElementsAre(5, 7, 1, 5));
  EXPECT_THAT(matrix(stack.dst), ElementsAre(4, 7, 7, 1));
}

TEST(MatmulStack, ASideOfRankOneIsARowOrAColumn) {
  const MatmulStack row = stack_of({.src = {5}, .weights = {2, 5, 7}, .bias = {7}, .has_bias = true});
  EXPECT_THAT((Dims{row.m, row.n, row.k}), ElementsAre(1, 7, 5));
  EXPECT_THAT(row.src.batch_strides, ElementsAre(0));
  EXPECT_THAT(row.dst.batch_strides, ElementsAre(7));
  EXPECT_EQ(row.bias.column_stride, 1);
  const MatmulStack column = stack_of({.src = {2, 4, 5}, .weights = {5}, .bias = {4}, .has_bias = true});
  EXPECT_THAT((Dims{column.m, column.n, column.k}), ElementsAre(4, 1, 5));
  EXPECT_EQ(column.dst.row_stride, 1);
  EXPECT_EQ(column.bias.row_stride, 1) << "dst has no columns, its rows are the last dim";
}

TEST(MatmulStack, ABatchWithTheSameWeightsIsRows) {
  const MatmulStack stack = collapsed(stack_of({.src = {2, 3, 4, 5}, .weights = {5, 7}, .bias = {7}, .has_bias = true}));
  EXPECT_THAT(stack.batch, IsEmpty());
  EXPECT_EQ(stack.m, 24);
  EXPECT_THAT(matrix(stack.src), ElementsAre(24, 5, 5, 1));
  EXPECT_EQ(stack.products(), 1);
}

TEST(MatmulStack, RowsThatDoNotRunOnStayABatch) {
  EXPECT_THAT(collapsed(stack_of({.src = {3, 4, 5}, .weights = {5, 7}, .src_strides = {100, 5, 1}})).batch, ElementsAre(3));
  EXPECT_THAT(collapsed(stack_of({.src = {3, 4, 5}, .weights = {5, 7}, .bias = {4, 1}, .has_bias = true})).batch,
              ElementsAre(3))
      << "the bias begins anew for every matrix";
  EXPECT_THAT(collapsed(stack_of({.src = {3, 4, 5}, .weights = {3, 5, 7}})).batch, ElementsAre(3));
}

TEST(MatmulStack, NeighbouringBatchDimsBecomeOne) {
  const MatmulStack heads = collapsed(stack_of({.src = {2, 1, 3, 4, 5}, .weights = {2, 1, 3, 5, 7}}));
  EXPECT_THAT(heads.batch, ElementsAre(6));
  EXPECT_THAT(heads.weights.batch_strides, ElementsAre(35));
  const MatmulStack shared = collapsed(stack_of({.src = {2, 3, 4, 5}, .weights = {2, 1, 5, 7}}));
  EXPECT_THAT(shared.batch, ElementsAre(2)) << "the three with the same weights are rows";
  EXPECT_EQ(shared.m, 12);
}

// Each matrix has one row: the rows of the batch form one matrix for any row stride.
TEST(MatmulStack, SingleRowsAreRowsOfOneMatrix) {
  const MatmulStack stack = collapsed(stack_of({.src = {6, 1, 5}, .weights = {5, 7}}));
  EXPECT_THAT(stack.batch, IsEmpty());
  EXPECT_THAT(matrix(stack.src), ElementsAre(6, 5, 5, 1));
  EXPECT_THAT(matrix(stack.dst), ElementsAre(6, 7, 7, 1));
}

}  // namespace
}  // namespace lamina::testing
