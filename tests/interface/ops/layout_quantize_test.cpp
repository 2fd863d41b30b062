#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "interface/type_rules.h"
#include "support/op_builder.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;

constexpr DataType f32 = DataType::f32;
constexpr DataType s8 = DataType::s8;
constexpr DataType u8 = DataType::u8;

OpBuilder reshape(Dims src, std::vector<int64_t> shape, bool special_zero = false) {
  return an_op(OpKind::StaticReshape)
      .attr("shape", std::move(shape))
      .attr("special_zero", special_zero)
      .input("src", f32, std::move(src))
      .output("dst", f32);
}

Dims reshaped(Dims src, std::vector<int64_t> shape, bool special_zero = false) {
  return shapes_of(reshape(std::move(src), std::move(shape), special_zero)).at("dst");
}

TEST(BitCastSchema, KeepsShapeAndBits) {
  const auto bits = [](DataType from, DataType to) {
    return an_op(OpKind::BitCast).input("src", from, Dims{2, 3}).output("dst", to);
  };
  EXPECT_EQ(shapes_of(bits(f32, DataType::s32)).at("dst"), (Dims{2, 3}));
  for (const auto& [from, to] : {std::pair{f32, DataType::u32},
                                 {DataType::f16, DataType::bf16},
                                 {DataType::boolean, DataType::u8},
                                 {DataType::s64, DataType::f64},
                                 {DataType::f8_e4m3, DataType::s8}})
    EXPECT_EQ(error_of(bits(from, to)), "") << name_of(from);
  EXPECT_THAT(error_of(bits(f32, DataType::s64)), HasSubstr("two different types of as many bits"));
  EXPECT_THAT(error_of(bits(f32, f32)), HasSubstr("two different types of as many bits"));
  EXPECT_THAT(error_of(bits(DataType::u8, DataType::boolean)), HasSubstr("output dst is boolean"));
}

TEST(StaticReshapeSchema, OneExtentIsDeducedAndZerosCopy) {
  EXPECT_EQ(reshaped({2, 3, 4}, {6, 4}), (Dims{6, 4}));
  EXPECT_EQ(reshaped({2, 3, 4}, {-1, 4}), (Dims{6, 4}));
  EXPECT_EQ(reshaped({2, 3, 4}, {0, -1}, true), (Dims{2, 12}));
  EXPECT_EQ(reshaped({2, 0, 4}, {0, 8}), (Dims{0, 8}));
  EXPECT_EQ(reshaped({1}, {}), (Dims{}));
  EXPECT_EQ(reshaped({kUnknownDim, 4}, {-1, 2, 2}), (Dims{kUnknownDim, 2, 2}));
  EXPECT_EQ(reshaped({kUnknownDim, 4}, {0, 2, 2}, true), (Dims{kUnknownDim, 2, 2}));
}

TEST(StaticReshapeSchema, ElementCountsAgree) {
  EXPECT_EQ(error_of(reshape({2, 3}, {4, 2})),
            "StaticReshape \"op0\": attribute shape is [4, 2], allowed is a shape of the 6 elements of src [2, 3]");
  EXPECT_THAT(error_of(reshape({2, 3}, {-1, 4})), HasSubstr("a shape of the 6 elements of src"));
  EXPECT_THAT(error_of(reshape({2, 3}, {-1, -1})), HasSubstr("allowed is entries of -1 or more, at most one of them -1"));
  EXPECT_THAT(error_of(reshape({2, 3}, {-2, 3})), HasSubstr("allowed is entries of -1 or more"));
  EXPECT_THAT(error_of(reshape({2, 3}, {6, 1, 0}, true)), HasSubstr("allowed is a 0 only where src [2, 3] has an axis"));
  EXPECT_THAT(error_of(reshape({1}, std::vector<int64_t>(13, 1))), HasSubstr("at most 12 entries"));
}

OpBuilder transpose(std::vector<int64_t> order) {
  return an_op(OpKind::StaticTranspose).attr("order", std::move(order)).input("src", s8, Dims{2, 3, 4}).output("dst", s8);
}

TEST(StaticTransposeSchema, TheOrderIsAPermutation) {
  EXPECT_EQ(shapes_of(transpose({1, 2, 0})), (Shapes{{"dst", {3, 4, 2}}}));
  EXPECT_EQ(shapes_of(transpose({0, -1, -2})), (Shapes{{"dst", {2, 4, 3}}}));
  EXPECT_EQ(shapes_of(transpose({})), (Shapes{{"dst", {4, 3, 2}}}));
  for (const std::vector<int64_t>& order : {std::vector<int64_t>{0, 1}, {0, 1, 1}, {0, 1, 3}, {0, 1, 2, 2}})
    EXPECT_THAT(error_of(transpose(order)), HasSubstr("allowed is a permutation of the 3 axes of src"));
}

TEST(LayoutSchemas, MoveAnyType) {
  for (DataType type : all_types()) {
    EXPECT_EQ(error_of(an_op(OpKind::Reorder).input("src", type, Dims{2}).output("dst", type)), "");
    EXPECT_EQ(error_of(reshape({4}, {2, 2}).without_input("src").without_output("dst").input("src", type).output("dst", type)),
              "");
  }
  EXPECT_THAT(error_of(an_op(OpKind::Reorder).input("src", f32).output("dst", s8)),
              HasSubstr("output dst is s8, allowed is f32"));
}

OpBuilder concat(std::vector<Dims> shapes, int axis) {
  OpBuilder op(OpKind::Concat);
  for (Dims& shape : shapes) op.input("src_i", f32, std::move(shape));
  return op.attr("axis", axis).output("dst", f32);
}

TEST(ConcatSchema, ExtentsAddAlongTheAxis) {
  EXPECT_EQ(shapes_of(concat({{2, 3}, {2, 4}, {2, 5}}, 1)), (Shapes{{"dst", {2, 12}}}));
  EXPECT_EQ(shapes_of(concat({{2, 3}, {1, 3}}, -2)), (Shapes{{"dst", {3, 3}}}));
  EXPECT_EQ(shapes_of(concat({{2, 3}}, 0)), (Shapes{{"dst", {2, 3}}}));
  EXPECT_EQ(shapes_of(concat({{kUnknownDim, 3}, {2, kUnknownDim}}, 1)), (Shapes{{"dst", {2, kUnknownDim}}}));
  EXPECT_EQ(error_of(concat({{2, 3}, {4, 3}}, 1)),
            "Concat \"op0\": input 1 has shape [4, 3], allowed is [2, 3] with any extent on axis 1");
  EXPECT_THAT(error_of(concat({{2, 3}, {3}}, 1)), HasSubstr("input 1 has shape [3]"));
  EXPECT_THAT(error_of(concat({{2, 3}}, 2)), HasSubstr("attribute axis is 2, allowed is -2..1"));
}

TEST(ConcatSchema, TakesOneTo64Inputs) {
  EXPECT_EQ(error_of(concat(std::vector<Dims>(64, Dims{1}), 0)), "");
  EXPECT_THAT(error_of(concat(std::vector<Dims>(65, Dims{1}), 0)), HasSubstr("65 inputs are given, allowed is 1..64"));
  EXPECT_THAT(error_of(concat({}, 0)), HasSubstr("input src_i is missing, allowed is one or more"));
}

// ---- Slice, Expand

OpBuilder slice(Dims src, std::vector<int64_t> starts, std::vector<int64_t> ends, std::vector<int64_t> axes = {},
                std::vector<int64_t> steps = {}) {
  return an_op(OpKind::Slice)
      .attr("starts", std::move(starts))
      .attr("ends", std::move(ends))
      .attr("axes", std::move(axes))
      .attr("steps", std::move(steps))
      .input("src", f32, std::move(src))
      .output("dst", f32);
}

Dims sliced(Dims src, std::vector<int64_t> starts, std::vector<int64_t> ends, std::vector<int64_t> axes = {},
            std::vector<int64_t> steps = {}) {
  return shapes_of(slice(std::move(src), std::move(starts), std::move(ends), std::move(axes), std::move(steps))).at("dst");
}

TEST(SliceSchema, TakesWhatLiesBetweenTheBounds) {
  EXPECT_EQ(sliced({6, 8}, {1}, {4}), (Dims{3, 8}));
  EXPECT_EQ(sliced({6, 8}, {1, 2}, {4, 8}), (Dims{3, 6}));
  EXPECT_EQ(sliced({6, 8}, {2}, {3}, {-1}), (Dims{6, 1}));
  EXPECT_EQ(sliced({6, 8}, {0, 1}, {6, 8}, {0, 1}, {4, 3}), (Dims{2, 3}));
  EXPECT_EQ(sliced({6, 8}, {}, {}), (Dims{6, 8}));
}

TEST(SliceSchema, BoundsCountFromTheEndAndAreCutOffAtTheEnds) {
  EXPECT_EQ(sliced({6}, {-2}, {INT64_MAX}), (Dims{2}));
  EXPECT_EQ(sliced({6}, {0}, {-1}), (Dims{5}));
  EXPECT_EQ(sliced({6}, {-100}, {100}), (Dims{6}));
  EXPECT_EQ(sliced({6}, {INT64_MIN}, {INT64_MAX}, {}, {INT64_MAX}), (Dims{1}));
  EXPECT_EQ(sliced({6}, {4}, {2}), (Dims{0}));
  EXPECT_EQ(sliced({0}, {0}, {3}), (Dims{0}));
}

TEST(SliceSchema, KnowsOfAnUnknownExtentOnlyThatAllIsTaken) {
  EXPECT_EQ(sliced({kUnknownDim, 8}, {0}, {INT64_MAX}), (Dims{kUnknownDim, 8}));
  EXPECT_EQ(sliced({kUnknownDim, 8}, {2}, {4}, {1}), (Dims{kUnknownDim, 2}));
  EXPECT_EQ(sliced({kUnknownDim, 8}, {2}, {4}, {0}), (Dims{kUnknownDim, 8}));
}

TEST(SliceSchema, ListsAreAsLongAsStarts) {
  EXPECT_EQ(error_of(slice({6}, {0}, {})), "Slice \"op0\": attribute ends has 0 entries, allowed is 1, as many as starts");
  EXPECT_THAT(error_of(slice({6}, {0}, {1}, {0, 1})),
              HasSubstr("attribute axes has 2 entries, allowed is 1, as many as starts"));
  EXPECT_THAT(error_of(slice({6}, {0}, {1}, {}, {1, 1})), HasSubstr("attribute steps has 2 entries, allowed is 1"));
}

TEST(SliceSchema, AxesAreThoseOfSrcAndStepsGoForward) {
  EXPECT_EQ(error_of(slice({6}, {0}, {1}, {1})), "Slice \"op0\": attribute axes contains 1, allowed is -1..0");
  EXPECT_THAT(error_of(slice({6}, {0, 0}, {1, 1})), HasSubstr("attribute axes contains 1, allowed is -1..0"));
  EXPECT_THAT(error_of(slice({6, 8}, {0, 0}, {1, 1}, {1, -1})), HasSubstr("contains axis 1 twice, allowed is once"));
  EXPECT_THAT(error_of(slice({6}, {0}, {1}, {}, {0})), HasSubstr("attribute steps is [0]"));
  EXPECT_THAT(error_of(slice({6}, {5}, {0}, {}, {-1})), HasSubstr("attribute steps is [-1]"));
}

OpBuilder expand(Dims src, std::vector<int64_t> shape) {
  return an_op(OpKind::Expand).attr("shape", std::move(shape)).input("src", f32, std::move(src)).output("dst", f32);
}

TEST(ExpandSchema, BroadcastsSrcAndShapeToEachOther) {
  const auto expanded = [](Dims src, std::vector<int64_t> shape) {
    return shapes_of(expand(std::move(src), std::move(shape))).at("dst");
  };
  EXPECT_EQ(expanded({4, 1}, {4, 8}), (Dims{4, 8}));
  EXPECT_EQ(expanded({4, 1}, {-1, 8}), (Dims{4, 8}));
  EXPECT_EQ(expanded({4, 1}, {2, 1, 8}), (Dims{2, 4, 8}));
  EXPECT_EQ(expanded({4, 1, 1}, {8}), (Dims{4, 1, 8}));
  EXPECT_EQ(expanded({}, {3}), (Dims{3}));
  EXPECT_EQ(expanded({kUnknownDim, 1}, {-1, 8}), (Dims{kUnknownDim, 8}));
  EXPECT_EQ(expanded({1}, {0}), (Dims{0}));
  EXPECT_THAT(error_of(expand({4, 2}, {4, 8})), HasSubstr("shapes [4, 2] and [4, 8] do not broadcast"));
  EXPECT_THAT(error_of(expand({4}, {-2})), HasSubstr("attribute shape is [-2], allowed is entries of -1 or more"));
}

TEST(PartSchemas, MoveAnyTypeOfWholeBytes) {
  for (const DataType type : all_types()) {
    const bool whole = bits_of(type) >= 8;
    const std::string sliced_error =
        error_of(slice({6}, {0}, {1}).without_input("src").without_output("dst").input("src", type).output("dst", type));
    EXPECT_EQ(sliced_error.empty(), whole) << sliced_error;
    const std::string expanded_error =
        error_of(expand({1}, {2}).without_input("src").without_output("dst").input("src", type).output("dst", type));
    EXPECT_EQ(expanded_error.empty(), whole) << expanded_error;
  }
}

// ---- quantisation

OpBuilder quantize(std::vector<float> scales, DataType dst = s8) {
  return an_op(OpKind::Quantize).floats("scales", std::move(scales)).input("src", f32, Dims{2, 3}).output("dst", dst);
}

TEST(QuantizeSchemas, PerTensorTakesOneScale) {
  EXPECT_EQ(shapes_of(quantize({0.5F})), (Shapes{{"dst", {2, 3}}}));
  EXPECT_EQ(error_of(quantize({0.5F, 1.0F})),
            "Quantize \"op0\": attribute scales has 2 entries, allowed is 1 because qtype is per_tensor");
  EXPECT_THAT(error_of(quantize({})), HasSubstr("attribute scales is [], allowed is one entry or more"));
}

TEST(QuantizeSchemas, PerChannelTakesOneScalePerElementOfTheAxis) {
  const auto per_channel = [](std::vector<float> scales) { return quantize(std::move(scales)).attr("qtype", "per_channel"); };
  EXPECT_EQ(error_of(per_channel({1, 2, 3})), "");
  EXPECT_EQ(error_of(per_channel({1, 2}).attr("axis", 0)), "");
  EXPECT_EQ(error_of(per_channel({1, 2})),
            "Quantize \"op0\": attribute scales has 2 entries, allowed is 3, the extent of axis 1");
  EXPECT_THAT(error_of(per_channel({1, 2, 3}).attr("axis", 2)), HasSubstr("attribute axis is 2, allowed is -2..1"));
  EXPECT_EQ(error_of(per_channel({1, 2, 3, 4}).without_input("src").input("src", f32)), "");
}

TEST(QuantizeSchemas, ScalesAreFiniteAndNotZero) {
  for (const float scale : {0.0F, INFINITY, NAN})
    EXPECT_THAT(error_of(quantize({scale})), HasSubstr("allowed is finite numbers other than 0"));
}

TEST(QuantizeSchemas, ZeroPointsFitTheType) {
  const auto with_zps = [](DataType dst, std::vector<int64_t> zps) {
    return quantize({1.0F}, dst).attr("zps", std::move(zps));
  };
  EXPECT_EQ(error_of(with_zps(s8, {-128})), "");
  EXPECT_EQ(error_of(with_zps(u8, {255})), "");
  EXPECT_EQ(error_of(with_zps(s8, {128})),
            "Quantize \"op0\": attribute zps contains 128, allowed is -128..127, the range of s8");
  EXPECT_EQ(error_of(with_zps(u8, {-1})), "Quantize \"op0\": attribute zps contains -1, allowed is 0..255, the range of u8");
  EXPECT_EQ(error_of(with_zps(s8, {1, 2})), "Quantize \"op0\": attribute zps has 2 entries, allowed is 1, as many as scales");
  EXPECT_EQ(error_of(with_zps(DataType::f8_e4m3, {1})),
            "Quantize \"op0\": attribute zps is given, allowed is none with f8_e4m3");
}

TEST(QuantizeSchemas, DequantizeLooksAtItsInput) {
  const auto dequantize = [](DataType src) {
    return an_op(OpKind::Dequantize)
        .floats("scales", {1.0F})
        .attr("zps", std::vector<int64_t>{200})
        .input("src", src)
        .output("dst", f32);
  };
  EXPECT_EQ(error_of(dequantize(u8)), "");
  EXPECT_THAT(error_of(dequantize(s8)), HasSubstr("attribute zps contains 200"));
  EXPECT_THAT(error_of(dequantize(DataType::f8_e5m2)), HasSubstr("allowed is none with f8_e5m2"));
}

TEST(QuantizeSchemas, QtypeIsAKnownWord) {
  EXPECT_EQ(error_of(quantize({1.0F}).attr("qtype", "per_group")),
            "Quantize \"op0\": attribute qtype is \"per_group\", allowed is \"per_tensor\", \"per_channel\"");
}

OpBuilder dynamic_dequantize(const char* qtype, Dims src, Dims scales) {
  return an_op(OpKind::DynamicDequantize)
      .attr("qtype", qtype)
      .input("src", DataType::u4, std::move(src))
      .input("scales", DataType::f16, std::move(scales))
      .output("dst", DataType::f16);
}

TEST(DynamicQuantizeSchemas, ShapesOfScales) {
  EXPECT_EQ(error_of(dynamic_dequantize("per_tensor", {4, 6}, {1})), "");
  EXPECT_EQ(error_of(dynamic_dequantize("per_tensor", {4, 6}, {})), "");
  EXPECT_THAT(error_of(dynamic_dequantize("per_tensor", {4, 6}, {6})), HasSubstr("allowed is [1] because qtype is per_tensor"));
  EXPECT_EQ(error_of(dynamic_dequantize("per_channel", {4, 6}, {6})), "");
  EXPECT_EQ(error_of(dynamic_dequantize("per_channel", {4, 6}, {6}).input("zps", u8, Dims{1})), "");
  EXPECT_THAT(error_of(dynamic_dequantize("per_channel", {4, 6}, {4})), HasSubstr("allowed is [6], the extent of the axis"));
}

TEST(DynamicQuantizeSchemas, PerGroupDividesSrc) {
  const auto per_group = [](std::vector<int64_t> group, Dims scales) {
    return dynamic_dequantize("per_group", {4, 6}, std::move(scales)).attr("group_shape", std::move(group));
  };
  EXPECT_EQ(error_of(per_group({1, 3}, {4, 2})), "");
  EXPECT_EQ(error_of(per_group({1, 3}, {4, 2}).input("zps", u8, Dims{4, 2})), "");
  EXPECT_THAT(error_of(per_group({1, 3}, {4, 2}).input("zps", u8, Dims{4, 1})), HasSubstr("input zps has shape [4, 1]"));
  EXPECT_THAT(error_of(per_group({1, 3}, {4, 3})),
              HasSubstr("input scales has shape [4, 3], allowed is [4, 2], the groups of src"));
  EXPECT_THAT(error_of(per_group({1, 4}, {4, 2})), HasSubstr("allowed is divisors of src [4, 6]"));
  EXPECT_THAT(error_of(per_group({3}, {4, 2})), HasSubstr("attribute group_shape has 1 entries, allowed is 2"));
  EXPECT_THAT(error_of(dynamic_dequantize("per_group", {4, 6}, {4, 2})), HasSubstr("attribute group_shape has 0 entries"));
}

}  // namespace
}  // namespace lamina::testing
