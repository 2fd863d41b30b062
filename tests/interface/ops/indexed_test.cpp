// Gather and ScatterAdd: shapes, attributes and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interface/indices.h"
#include "interface/status.h"
#include "support/op_builder.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32, s64 = DataType::s64;

OpBuilder gather(Dims src, Dims indices, int axis, DataType type = s64) {
  return an_op(OpKind::Gather)
      .attr("axis", axis)
      .input("src", f32, std::move(src))
      .input("indices", type, std::move(indices))
      .output("dst", f32);
}

TEST(GatherSchema, IndicesTakeThePlaceOfTheAxis) {
  const auto gathered = [](Dims src, Dims indices, int axis) {
    return shapes_of(gather(std::move(src), std::move(indices), axis)).at("dst");
  };
  EXPECT_EQ(gathered({10, 8}, {2, 3}, 0), (Dims{2, 3, 8}));
  EXPECT_EQ(gathered({10, 8}, {2, 3}, -1), (Dims{10, 2, 3}));
  EXPECT_EQ(gathered({10, 8}, {}, 0), (Dims{8}));
  EXPECT_EQ(gathered({10, 8}, {kUnknownDim}, 0), (Dims{kUnknownDim, 8}));
}

TEST(GatherSchema, RefusesOtherAxesAndIndices) {
  EXPECT_EQ(error_of(gather({10, 8}, {2}, 2)), "Gather \"op0\": attribute axis is 2, allowed is -2..1");
  EXPECT_THAT(error_of(gather({}, {2}, 0)), HasSubstr("attribute axis is 0"));
  EXPECT_EQ(error_of(gather({10}, {2}, 0, DataType::s32)), "");
  EXPECT_THAT(error_of(gather({10}, {2}, 0, f32)), HasSubstr("input indices is f32, allowed is s32, s64"));
  EXPECT_THAT(error_of(gather(Dims(8, 1), Dims(8, 1), 0)), HasSubstr("dst has rank 15, allowed is at most 12"));
}

OpBuilder scatter(Dims src, Dims indices, int axis, int extent = 10) {
  return an_op(OpKind::ScatterAdd)
      .attr("axis", axis)
      .attr("extent", extent)
      .input("src", f32, std::move(src))
      .input("indices", s64, std::move(indices))
      .output("dst", f32);
}

TEST(ScatterAddSchema, GivesTheShapeThatWasGatheredFrom) {
  const auto scattered = [](Dims src, Dims indices, int axis) {
    return shapes_of(scatter(std::move(src), std::move(indices), axis)).at("dst");
  };
  EXPECT_EQ(scattered({2, 3, 8}, {2, 3}, 0), (Dims{10, 8}));
  EXPECT_EQ(scattered({8, 2, 3}, {2, 3}, 1), (Dims{8, 10}));
  EXPECT_EQ(scattered({8, 2, 3}, {2, 3}, -1), (Dims{8, 10}));
  EXPECT_EQ(scattered({8}, {}, 0), (Dims{10, 8}));
  EXPECT_EQ(scattered({kUnknownDim, 8}, {5}, 0), (Dims{10, 8}));
}

TEST(ScatterAddSchema, RefusesWhatDoesNotFit) {
  EXPECT_EQ(
      error_of(scatter({2, 4, 8}, {2, 3}, 0)),
      "ScatterAdd \"op0\": input src has shape [2, 4, 8], allowed is [2, 3, 8], which has the shape of indices from axis 0 on");
  EXPECT_THAT(error_of(scatter({2}, {2, 3}, 0)), HasSubstr("allowed is a rank of 2 or more"));
  EXPECT_THAT(error_of(scatter({2, 8}, {2}, 2)), HasSubstr("attribute axis is 2, allowed is -2..1"));
  EXPECT_THAT(error_of(scatter({2, 8}, {2}, 0, -1)), HasSubstr("attribute extent is -1, allowed is 0 or more"));
  EXPECT_EQ(error_of(scatter({2, 8}, {2}, 0).attr("ignore_index", -100)), "");
}

TEST(SortedIndices, KeepTheOrderOfEqualOnes) {
  LogicalTensor indices;
  indices.dtype = s64, indices.shape = Dims{2, 3}, indices.strides = {3, 1};
  Op op;
  op.kind = OpKind::ScatterAdd;
  std::vector<int64_t> values{1, -1, 0, 7, 1, 1}, sorted(static_cast<size_t>(sorted_size(indices, 3)));
  sort_indices(op, indices, values.data(), 3, {{100, 10}, 7}, sorted.data());
  sorted.resize(9);  // index 7 is left out
  EXPECT_THAT(sorted, ::testing::ElementsAre(4, 5, 8, 9, 20, 0, 110, 120, 10));
  EXPECT_THROW(sort_indices(op, indices, values.data(), 3, {{100, 10}, std::nullopt}, sorted.data()), Error);
}

}  // namespace
}  // namespace lamina::testing
