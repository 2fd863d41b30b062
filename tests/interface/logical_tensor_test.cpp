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

TEST(LogicalTensor, DimsAgreeUnlessBothAreKnownAndDiffer) {
  EXPECT_TRUE(dims_agree(Dims{2, 3}, Dims{2, 3}));
  EXPECT_TRUE(dims_agree(Dims{2, kUnknownDim}, Dims{kUnknownDim, 3}));
  EXPECT_TRUE(dims_agree(Dims{}, Dims{}));
  EXPECT_FALSE(dims_agree(Dims{2, 3}, Dims{2, 4}));
  EXPECT_FALSE(dims_agree(Dims{2, kUnknownDim}, Dims{3, 3}));
  EXPECT_FALSE(dims_agree(Dims{2}, Dims{2, 3}));
  EXPECT_FALSE(dims_agree(Dims{2, 3}, Dims{2}));
}

TEST(LogicalTensor, JoinedDimsAreThoseThatEitherKnows) {
  EXPECT_EQ(joined_dims({2, kUnknownDim, kUnknownDim}, {kUnknownDim, 3, kUnknownDim}), (Dims{2, 3, kUnknownDim}));
  EXPECT_EQ(joined_dims({}, {}), (Dims{}));
  EXPECT_EQ(joined_dims({2, kUnknownDim}, {3, 4}), (Dims{2, 4})) << "the first is preferred";
  EXPECT_THROW(joined_dims({2}, {2, 3}), Error);
}

TEST(LogicalTensor, WithoutStridesATensorOfKnownShapeIsMadeDense) {
  for (const LayoutType layout : {LayoutType::undef, LayoutType::any, LayoutType::strided}) {
    LogicalTensor tensor = strided(DataType::f32, {2, 3}, {});
    tensor.layout = layout;
    const LogicalTensor dense = made_dense(tensor);
    EXPECT_EQ(dense.layout, LayoutType::strided) << name_of(layout);
    EXPECT_EQ(dense.strides, (Dims{3, 1})) << name_of(layout);
    EXPECT_EQ(dense.id, tensor.id);
  }
  EXPECT_EQ(made_dense(strided(DataType::f32, {}, {})).layout, LayoutType::strided);
}

TEST(LogicalTensor, MadeDenseLeavesOtherTensorsAlone) {
  EXPECT_EQ(made_dense(strided(DataType::f32, {2, 3}, {8, 2})).strides, (Dims{8, 2})) << "it has strides";
  LogicalTensor opaque = strided(DataType::f32, {2, 3}, {});
  opaque.layout = LayoutType::opaque;
  EXPECT_EQ(made_dense(opaque).layout, LayoutType::opaque);
  LogicalTensor unknown = strided(DataType::f32, {2, kUnknownDim}, {});
  unknown.layout = LayoutType::any;
  EXPECT_EQ(made_dense(unknown).layout, LayoutType::any);
  EXPECT_TRUE(made_dense(unknown).strides.empty());
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
