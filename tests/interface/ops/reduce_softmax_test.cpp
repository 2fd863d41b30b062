#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/op_builder.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;

constexpr DataType f32 = DataType::f32;
constexpr DataType bf16 = DataType::bf16;
constexpr DataType f16 = DataType::f16;
constexpr DataType f64 = DataType::f64;

OpBuilder reduce(std::vector<int64_t> axes, bool keep_dims = false) {
  return an_op(OpKind::ReduceSum)
      .attr("axes", std::move(axes))
      .attr("keep_dims", keep_dims)
      .input("src", f32, Dims{2, 3, 4})
      .output("dst", f32);
}

TEST(ReduceSchemas, ListedAxesVanishOrBecomeOne) {
  EXPECT_EQ(shapes_of(reduce({1})), (Shapes{{"dst", {2, 4}}}));
  EXPECT_EQ(shapes_of(reduce({1}, true)), (Shapes{{"dst", {2, 1, 4}}}));
  EXPECT_EQ(shapes_of(reduce({-1, 0})), (Shapes{{"dst", {3}}}));
  EXPECT_EQ(shapes_of(reduce({0, 1, 2})), (Shapes{{"dst", {}}}));
}

TEST(ReduceSchemas, AZeroExtentThatIsNotListedStays) {
  const auto op = reduce({1}).without_input("src").input("src", f32, Dims{0, 3, 4});
  EXPECT_EQ(shapes_of(op), (Shapes{{"dst", {0, 4}}}));
}

TEST(ReduceSchemas, AxesAreInRangeAndListedOnce) {
  EXPECT_EQ(error_of(reduce({3})), "ReduceSum \"op0\": attribute axes contains 3, allowed is -3..2");
  EXPECT_EQ(error_of(reduce({1, -2})), "ReduceSum \"op0\": attribute axes contains axis 1 twice, allowed is once");
}

TEST(ReduceSchemas, AxesAreGivenInExactlyOnePlace) {
  EXPECT_THAT(error_of(reduce({})), HasSubstr("axes are not given, allowed is exactly one of"));
  EXPECT_THAT(error_of(reduce({1}).input("axes", DataType::s32, Dims{1})), HasSubstr("axes are given twice"));
}

TEST(ReduceSchemas, AxesMayBeAnInput) {
  EXPECT_EQ(shapes_of(reduce({}).input("axes", DataType::s32, Dims{2})), (Shapes{{"dst", {kUnknownDim}}}));
  EXPECT_EQ(shapes_of(reduce({}, true).input("axes", DataType::s32, Dims{2})),
            (Shapes{{"dst", {kUnknownDim, kUnknownDim, kUnknownDim}}}));
  EXPECT_THAT(error_of(reduce({}).input("axes", DataType::s32, Dims{4})),
              HasSubstr("input axes has 4 entries, allowed is 1..3"));
  EXPECT_THAT(error_of(reduce({}).input("axes", DataType::s32, Dims{1, 1})), HasSubstr("allowed is rank 0 or 1"));
}

OpBuilder softmax(DataType src = f32, DataType dst = f32) {
  return an_op(OpKind::SoftMax).input("src", src, Dims{2, 3, 4}).output("dst", dst);
}

TEST(SoftMaxSchema, StatsHaveExtentOneOnTheAxis) {
  EXPECT_EQ(shapes_of(softmax()), (Shapes{{"dst", {2, 3, 4}}, {"stats", {2, 1, 4}}}));
  EXPECT_EQ(shapes_of(softmax().attr("axis", -1).output("stats", f32)).at("stats"), (Dims{2, 3, 1}));
  EXPECT_EQ(error_of(softmax().attr("axis", 3)), "SoftMax \"op0\": attribute axis is 3, allowed is -3..2");
}

TEST(SoftMaxSchema, Types) {
  for (const auto& [src, dst] : {std::pair{f32, bf16}, {f32, f16}, {bf16, f32}, {bf16, bf16}, {f16, f32}, {f64, f64}})
    EXPECT_EQ(error_of(softmax(src, dst)), "");
  EXPECT_THAT(error_of(softmax(bf16, f16)), HasSubstr("allowed is equal types, or f32 on one side"));
  EXPECT_THAT(error_of(softmax(f64, f32)), HasSubstr("f64 with f64 only"));
  EXPECT_THAT(error_of(softmax(f64, f64).output("stats", f32)), HasSubstr("f64 with f64 only"));
  EXPECT_EQ(error_of(softmax(f64, f64).output("stats", f64)), "");
  EXPECT_THAT(error_of(softmax(bf16, bf16).output("stats", bf16)), HasSubstr("output stats is bf16, allowed is f32, f64"));
}

TEST(SoftMaxBackwardSchemas, ShapesAndTypes) {
  const auto backward = [](OpKind kind, DataType data, DataType gradient, Dims shape) {
    return an_op(kind).input("diff_dst", data, Dims{2, 3}).input("dst", data, std::move(shape)).output("diff_src", gradient);
  };
  EXPECT_EQ(shapes_of(backward(OpKind::SoftMaxBackward, bf16, f32, {2, 3})), (Shapes{{"diff_src", {2, 3}}}));
  EXPECT_EQ(error_of(backward(OpKind::LogSoftmaxBackward, bf16, bf16, {2, 3})), "");
  EXPECT_THAT(error_of(backward(OpKind::SoftMaxBackward, f32, bf16, {2, 3})), HasSubstr("the type of the input, or f32"));
  EXPECT_THAT(error_of(backward(OpKind::LogSoftmaxBackward, bf16, f32, {2, 3})), HasSubstr("output diff_src is f32"));
  EXPECT_THAT(error_of(backward(OpKind::SoftMaxBackward, f32, f32, {2, 4})),
              HasSubstr("input dst has shape [2, 4], allowed is [2, 3], the shape of diff_dst"));
}

TEST(LogSoftmaxSchema, TheDefaultAxisIsTheLast) {
  const auto op = an_op(OpKind::LogSoftmax).input("src", f32, Dims{5}).output("dst", f32);
  EXPECT_EQ(shapes_of(op), (Shapes{{"dst", {5}}}));
  EXPECT_EQ(op.view().attribute<int64_t>("axis"), -1);
}

}  // namespace
}  // namespace lamina::testing
