#include "api_fixture.h"

namespace api_test {
namespace {

using ::testing::ElementsAre;

TEST(LogicalTensor, KeepsWhatItWasMadeOf) {
  const logical_tensor t(7, data_type::bf16, {2, 3}, layout_type::strided, property_type::constant);
  EXPECT_EQ(t.get_id(), 7u);
  EXPECT_EQ(t.get_data_type(), data_type::bf16);
  EXPECT_EQ(t.get_layout_type(), layout_type::strided);
  EXPECT_EQ(t.get_property_type(), property_type::constant);
  EXPECT_THAT(t.get_dims(), ElementsAre(2, 3));
  EXPECT_THAT(t.get_strides(), ElementsAre(3, 1));
  EXPECT_EQ(t.get_mem_size(), 12u);
}

TEST(LogicalTensor, StridesAreKeptAndCountedInBytes) {
  const logical_tensor t(0, data_type::f32, {2, 3}, dims{8, 2});
  EXPECT_THAT(t.get_strides(), ElementsAre(8, 2));
  EXPECT_EQ(t.get_mem_size(), (8u + 4u + 1u) * 4u);  // from the first element to the end of the last one
}

TEST(LogicalTensor, ScalarHasRankZeroAndOneElement) {
  const logical_tensor t(0, data_type::s64, dims{}, layout_type::strided, property_type::host_scalar);
  EXPECT_TRUE(t.get_dims().empty());
  EXPECT_EQ(t.get_mem_size(), 8u);
}

TEST(LogicalTensor, ZeroSizeTakesNoMemoryAndHasStridesThatCountZeroAsOne) {
  const logical_tensor t = f32(0, {4, 0, 3});
  EXPECT_EQ(t.get_mem_size(), 0u);
  EXPECT_THAT(t.get_strides(), ElementsAre(3, 3, 1));
}

TEST(LogicalTensor, UnknownRankHasNoDims) {
  const logical_tensor t(3, data_type::f32);
  EXPECT_EQ(t.get_layout_type(), layout_type::undef);
  EXPECT_THAT(failure_of([&] { t.get_dims(); }), FailsWith(lamina_invalid_arguments, "logical tensor 3 has no dims"));
  EXPECT_EQ(t.get_mem_size(), SIZE_MAX);
}

TEST(LogicalTensor, KnownRankWithUnknownDims) {
  const logical_tensor t(3, data_type::f32, 2, layout_type::strided);
  EXPECT_THAT(t.get_dims(), ElementsAre(LAMINA_GRAPH_UNKNOWN_DIM, LAMINA_GRAPH_UNKNOWN_DIM));
  EXPECT_EQ(t.get_mem_size(), SIZE_MAX);
}

TEST(LogicalTensor, OneNumberInBracesIsADimNotARank) {
  const logical_tensor t(3, data_type::f32, {768}, layout_type::strided);
  EXPECT_THAT(t.get_dims(), ElementsAre(768));
}

TEST(LogicalTensor, LayoutAnyHasNoStrides) {
  const logical_tensor t(3, data_type::f32, dims{2, 3}, layout_type::any);
  EXPECT_THAT(failure_of([&] { t.get_strides(); }), FailsWith(lamina_invalid_arguments, "its layout is not strided"));
  EXPECT_EQ(t.get_mem_size(), SIZE_MAX);
}

TEST(LogicalTensor, LayoutIdIsThatOfAnOpaqueLayout) {
  const logical_tensor t(3, data_type::f32, dims{2, 3}, size_t{42});
  EXPECT_EQ(t.get_layout_type(), layout_type::opaque);
  EXPECT_EQ(t.get_layout_id(), 42u);
  EXPECT_THAT(failure_of([&] { f32(1, {2}).get_layout_id(); }), FailsWith(lamina_invalid_arguments, "not opaque"));
}

TEST(LogicalTensor, IsEqualComparesEveryPart) {
  const logical_tensor t = f32(0, {2, 3});
  EXPECT_TRUE(t.is_equal(f32(0, {2, 3})));
  EXPECT_FALSE(t.is_equal(f32(1, {2, 3})));
  EXPECT_FALSE(t.is_equal(f32(0, {3, 2})));
  EXPECT_FALSE(t.is_equal({0, data_type::bf16, {2, 3}, layout_type::strided}));
  EXPECT_FALSE(t.is_equal({0, data_type::f32, {2, 3}, layout_type::any}));
  EXPECT_FALSE(t.is_equal({0, data_type::f32, {2, 3}, dims{4, 1}}));
  EXPECT_FALSE(t.is_equal({0, data_type::f32, {2, 3}, layout_type::strided, property_type::constant}));
}

TEST(LogicalTensor, RefusesWhatNoTensorIs) {
  EXPECT_THAT(failure_of([] { f32(5, {2, -3}); }), FailsWith(lamina_invalid_arguments, "logical tensor 5: dim 1 is -3"));
  EXPECT_THAT(failure_of([] { f32(5, dims(13, 1)); }), FailsWith(lamina_invalid_arguments, "ndims is 13, allowed is -1"));
  EXPECT_THAT(failure_of([] { logical_tensor(5, data_type::f32, {2, 3}, dims{-3, 1}); }),
              FailsWith(lamina_invalid_arguments, "stride 0 is -3"));
  EXPECT_THAT(failure_of([] { logical_tensor(5, data_type::f32, {2, 3}, dims{1}); }),
              FailsWith(lamina_invalid_arguments, "one stride per dim"));
  EXPECT_THAT(failure_of([] { logical_tensor(5, static_cast<data_type>(14), {2}, layout_type::any); }),
              FailsWith(lamina_invalid_arguments, "data type is 14, which does not exist"));
  EXPECT_THAT(failure_of([] { logical_tensor(5, data_type::f32, {2}, static_cast<layout_type>(9)); }),
              FailsWith(lamina_invalid_arguments, "layout type is 9"));
}

}  // namespace
}  // namespace api_test
