// TopK, CumSum, CumProd, linear recurrences and GroupedMatMul: shapes, attributes and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/op_builder.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f64 = DataType::f64, s32 = DataType::s32, s64 = DataType::s64;

OpBuilder top_k(Dims src, int k, int axis = -1) {
  return an_op(OpKind::TopK)
      .attr("k", k)
      .attr("axis", axis)
      .input("src", f32, std::move(src))
      .output("dst", f32)
      .output("indices", s64);
}

TEST(TopKSchema, HasKEntriesAlongTheAxis) {
  // src [2, 7, 5], axis 1, k 3   ->   values and indices [2, 3, 5]
  const auto shapes = shapes_of(top_k({2, 7, 5}, 3, 1));
  EXPECT_EQ(shapes.at("dst"), (Dims{2, 3, 5}));
  EXPECT_EQ(shapes.at("indices"), (Dims{2, 3, 5}));
  EXPECT_EQ(shapes_of(top_k({2, kUnknownDim}, 3)).at("dst"), (Dims{2, 3}));
  EXPECT_EQ(shapes_of(top_k({4}, 0)).at("dst"), (Dims{0}));
}

TEST(TopKSchema, RefusesMoreEntriesThanThereAre) {
  EXPECT_EQ(error_of(top_k({2, 7}, 8)), "TopK \"op0\": attribute k is 8, allowed is 0..7");
  EXPECT_THAT(error_of(top_k({2, 7}, -1)), HasSubstr("attribute k is -1, allowed is 0 or more"));
  EXPECT_EQ(error_of(top_k({2, 7}, 1, 2)), "TopK \"op0\": attribute axis is 2, allowed is -2..1");
  EXPECT_THAT(error_of(top_k({}, 0)), HasSubstr("attribute axis"));
}

TEST(CumSumSchema, HasTheShapeOfSrc) {
  for (const OpKind kind : {OpKind::CumSum, OpKind::CumProd}) {
    const auto op = an_op(kind).attr("axis", 0).input("src", s64, Dims{3, 4}).output("dst", s64);
    EXPECT_EQ(shapes_of(op).at("dst"), (Dims{3, 4}));
    EXPECT_EQ(error_of(op), "");
  }
  EXPECT_THAT(error_of(an_op(OpKind::CumSum).attr("axis", 2).input("src", f32, Dims{3, 4}).output("dst", f32)),
              HasSubstr("attribute axis is 2, allowed is -2..1"));
  EXPECT_THAT(error_of(an_op(OpKind::CumSum).input("src", DataType::u8, Dims{3}).output("dst", DataType::u8)),
              HasSubstr("input src is u8"));
}

TEST(LinearRecurrenceSchema, HasTheShapeOfSrc) {
  const auto recurrence = [](Dims factors, int axis, DataType dtype) {
    return an_op(OpKind::LinearRecurrence)
        .attr("axis", axis)
        .input("factors", dtype, std::move(factors))
        .input("src", dtype, Dims{3, 4})
        .output("dst", dtype);
  };
  EXPECT_EQ(shapes_of(recurrence({3, 4}, 0, bf16)).at("dst"), (Dims{3, 4}));
  EXPECT_THAT(error_of(recurrence({3, 4}, 2, f32)), HasSubstr("attribute axis is 2, allowed is -2..1"));
  EXPECT_THAT(error_of(recurrence({4}, 0, f32)), HasSubstr("factors"));
  EXPECT_THAT(error_of(recurrence({3, 4}, 0, s32)), HasSubstr("input factors is s32"));
}

TEST(LinearRecurrenceBackwardSchema, HasTwoGradientsOfTheShapeOfDst) {
  const auto backward = [](Dims diff_dst) {
    return an_op(OpKind::LinearRecurrenceBackward)
        .input("diff_dst", f64, std::move(diff_dst))
        .input("factors", f64, Dims{3, 4})
        .input("dst", f64, Dims{3, 4})
        .output("diff_factors", f64)
        .output("diff_src", f64);
  };
  EXPECT_EQ(shapes_of(backward({3, 4})).at("diff_factors"), (Dims{3, 4}));
  EXPECT_EQ(shapes_of(backward({3, 4})).at("diff_src"), (Dims{3, 4}));
  EXPECT_THAT(error_of(backward({4, 3})), HasSubstr("diff_dst"));
}

OpBuilder grouped(Dims src, Dims weights, Dims offsets, bool transpose_b = false, DataType dtype = f32, DataType dst = f32) {
  return an_op(OpKind::GroupedMatMul)
      .attr("transpose_b", transpose_b)
      .input("src", dtype, std::move(src))
      .input("weights", dtype, std::move(weights))
      .input("offsets", s32, std::move(offsets))
      .output("dst", dst);
}

TEST(GroupedMatMulSchema, HasTheRowsOfSrcAndTheColumnsOfWeights) {
  EXPECT_EQ(shapes_of(grouped({10, 4}, {3, 4, 6}, {3})).at("dst"), (Dims{10, 6}));
  EXPECT_EQ(shapes_of(grouped({10, 4}, {3, 6, 4}, {3}, true)).at("dst"), (Dims{10, 6}));
  EXPECT_EQ(shapes_of(grouped({kUnknownDim, 4}, {3, 4, 6}, {kUnknownDim})).at("dst"), (Dims{kUnknownDim, 6}));
}

TEST(GroupedMatMulSchema, HasAMatrixForEachGroupOfColumns) {
  EXPECT_EQ(shapes_of(grouped({10, 4}, {4, 6}, {3})).at("dst"), (Dims{3, 10, 6}));
  EXPECT_EQ(shapes_of(grouped({4, 10}, {6, 4}, {3}, true).attr("transpose_a", true)).at("dst"), (Dims{3, 10, 6}));
}

TEST(GroupedMatMulSchema, NamesShapesThatDoNotFit) {
  EXPECT_THAT(error_of(grouped({10, 5}, {3, 4, 6}, {3})), HasSubstr("has 5 columns"));
  EXPECT_THAT(error_of(grouped({10, 4}, {3, 4, 6}, {2})), HasSubstr("offsets has 2 entries and weights 3 matrices"));
  EXPECT_THAT(error_of(grouped({10, 4}, {6}, {3})), HasSubstr("input weights has shape [6], allowed is rank 2 or 3"));
  EXPECT_THAT(error_of(grouped({10, 5}, {4, 6}, {3})), HasSubstr("has 5 columns"));
  EXPECT_THAT(error_of(grouped({10, 4}, {3, 4, 6}, {3}).attr("transpose_a", true)), HasSubstr("has 10 rows"));
  EXPECT_THAT(error_of(grouped({10, 4}, {3, 4, 6}, {3}, false, bf16, f64)), HasSubstr("f64"));
  EXPECT_EQ(error_of(grouped({10, 4}, {3, 4, 6}, {3}, false, bf16, f32)), "");
}

}  // namespace
}  // namespace lamina::testing
