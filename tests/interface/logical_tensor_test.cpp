#include "interface/logical_tensor.h"

#include <gtest/gtest.h>

#include "interface/status.h"

namespace lamina {
namespace {

LogicalTensor strided(DataType dtype, Dims shape, Dims strides) {
  LogicalTensor tensor;
  tensor.id = 7;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.layout = LayoutType::strided;
  tensor.strides = std::move(strides);
  return tensor;
}

TEST(LogicalTensor, AnEmptyPortIsTheDefault) {
  EXPECT_TRUE(LogicalTensor{}.is_empty_port());
  EXPECT_FALSE(strided(DataType::f32, {}, {}).is_empty_port());
}

TEST(LogicalTensor, UnknownRankAndUnknownDimsAreNotFullShapes) {
  LogicalTensor tensor;
  EXPECT_EQ(tensor.rank(), -1);
  EXPECT_FALSE(tensor.has_full_shape());
  tensor.shape = Dims{2, kUnknownDim};
  EXPECT_EQ(tensor.rank(), 2);
  EXPECT_FALSE(tensor.has_full_shape());
  tensor.shape = Dims{};
  EXPECT_EQ(tensor.rank(), 0);
  EXPECT_TRUE(tensor.has_full_shape());
}

TEST(LogicalTensor, DenseStridesCountZeroExtentsAsOne) {
  EXPECT_EQ(dense_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(dense_strides({2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(dense_strides({}), (Dims{}));
}

TEST(LogicalTensor, SpanReachesOnePastTheLastElement) {
  EXPECT_EQ(strided(DataType::f32, {2, 3}, {3, 1}).span(), 6);
  EXPECT_EQ(strided(DataType::f32, {2, 3}, {8, 2}).span(), 13);
  EXPECT_EQ(strided(DataType::f32, {2, 3}, {1, 2}).span(), 6);
  EXPECT_EQ(strided(DataType::f32, {4, 3}, {0, 1}).span(), 3);
  EXPECT_EQ(strided(DataType::f32, {}, {}).span(), 1);
  EXPECT_EQ(strided(DataType::f32, {4, 0}, {1, 1}).span(), 0);
}

TEST(LogicalTensor, ByteSizeIsThatOfTheSpan) {
  EXPECT_EQ(strided(DataType::bf16, {2, 3}, {8, 2}).byte_size(), 26);
  EXPECT_EQ(strided(DataType::s4, {3}, {1}).byte_size(), 2);
}

TEST(LogicalTensor, ElementCountIsChecked) {
  EXPECT_EQ(strided(DataType::f32, {2, 3}, {3, 1}).element_count(), 6);
  EXPECT_EQ(strided(DataType::f32, {INT64_MAX, INT64_MAX, 0}, {1, 1, 1}).element_count(), 0);
  EXPECT_THROW(strided(DataType::f32, {INT64_MAX, 2}, {1, 1}).element_count(), Error);
  EXPECT_THROW(strided(DataType::f32, {INT64_MAX, 3}, {4, 1}).span(), Error);
  EXPECT_THROW(dense_strides({INT64_MAX, INT64_MAX, 2}), Error);
}

TEST(LogicalTensor, DensityIgnoresStridesOfUnitExtents) {
  EXPECT_TRUE(is_dense(strided(DataType::f32, {2, 1, 3}, {3, 99, 1})));
  EXPECT_FALSE(is_dense(strided(DataType::f32, {2, 3}, {4, 1})));
  EXPECT_FALSE(is_dense(strided(DataType::f32, {2, 3}, {1, 2})));
  EXPECT_TRUE(is_dense(strided(DataType::f32, {0, 3}, {9, 9})));
}

TEST(LogicalTensor, StridesAreKnownOnlyInStridedLayout) {
  LogicalTensor tensor = strided(DataType::f32, {2, 3}, {3, 1});
  EXPECT_TRUE(tensor.has_strides());
  tensor.layout = LayoutType::any;
  EXPECT_FALSE(tensor.has_strides());
  EXPECT_FALSE(is_dense(tensor));
}

TEST(LogicalTensor, Descriptions) {
  EXPECT_EQ(describe(strided(DataType::f32, {2, 3, 8}, {})), "f32[2, 3, 8]");
  EXPECT_EQ(describe(strided(DataType::bf16, {kUnknownDim, 3}, {})), "bf16[?, 3]");
  EXPECT_EQ(describe(LogicalTensor{}), "undef[unknown rank]");
  EXPECT_EQ(describe(Dims{}), "[]");
  EXPECT_STREQ(name_of(LayoutType::strided), "strided");
  EXPECT_STREQ(name_of(PropertyType::host_scalar), "host_scalar");
}

}  // namespace
}  // namespace lamina
