// Elementwise ops: one tensor, two that broadcast, conversions and dropout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "interface/type_rules.h"
#include "support/op_builder.h"
#include "support/valid_op.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;

constexpr DataType f32 = DataType::f32;
constexpr DataType bf16 = DataType::bf16;
constexpr DataType f16 = DataType::f16;
constexpr DataType f64 = DataType::f64;
constexpr DataType s32 = DataType::s32;

// Every floating-point op with one input and one output of the same shape.
std::vector<OpKind> unary_kinds() {
  std::vector<OpKind> kinds;
  for (OpKind kind : all_op_kinds()) {
    const OpSchema& schema = schema_of(kind);
    if (schema.op_class != OpClass::elementwise || schema.inputs.size() != 1 || schema.types.size() != 1) continue;
    if (kind != OpKind::LogicalNot) kinds.push_back(kind);
  }
  return kinds;
}

TEST(UnarySchemas, DstHasTheShapeOfSrc) {
  EXPECT_EQ(unary_kinds().size(), 27U);
  for (OpKind kind : unary_kinds())
    for (const Dims& shape : {Dims{}, Dims{5}, Dims{2, 0, 3}, Dims{kUnknownDim, 4}}) {
      OpBuilder op(kind);
      for (const auto& [name, value] : legal_attributes(schema_of(kind))) op.attr(name, value);
      EXPECT_EQ(shapes_of(op.input("src", f32, shape).output("dst", f32)), (Shapes{{"dst", shape}})) << name_of(kind);
    }
}

TEST(UnarySchemas, TypesAreTheFloatsOfTheOpSetAndF64) {
  for (OpKind kind : unary_kinds())
    EXPECT_EQ(schema_of(kind).types[0].allowed, (std::vector{f32, bf16, f16, f64})) << name_of(kind);
}

TEST(UnarySchemas, ParametersAreFinite) {
  for (const auto& [kind, name] :
       {std::pair{OpKind::Elu, "alpha"}, {OpKind::LeakyReLU, "alpha"}, {OpKind::HardSigmoid, "beta"}, {OpKind::Pow, "beta"}})
    EXPECT_THAT(error_of(a_valid_op(kind).attr(name, std::nan(""))), HasSubstr(", allowed is a finite number"));
  EXPECT_THAT(error_of(a_valid_op(OpKind::SoftPlus).attr("beta", 0.0)), HasSubstr("a finite number other than 0"));
}

TEST(UnarySchemas, ClampTakesAnInterval) {
  const auto clamp = [](double low, double high) { return a_valid_op(OpKind::Clamp).attr("min", low).attr("max", high); };
  EXPECT_EQ(error_of(clamp(-1, 1)), "");
  EXPECT_EQ(error_of(clamp(0, INFINITY)), "");
  EXPECT_EQ(error_of(clamp(2, 1)), "Clamp \"op0\": attribute min is 2, allowed is at most max, which is 1");
  EXPECT_THAT(error_of(clamp(std::nan(""), 1)), HasSubstr("attribute min is nan, allowed is a number, not NaN"));
}

TEST(BackwardSchemas, ShapesOfDataAndGradientAgree) {
  OpBuilder op(OpKind::TanhBackward);
  op.input("src/dst", f32, Dims{2, kUnknownDim}).output("diff_src", f32);
  EXPECT_EQ(shapes_of(OpBuilder(op).input("diff_dst", f32, Dims{kUnknownDim, 3})), (Shapes{{"diff_src", {2, 3}}}));
  EXPECT_EQ(error_of(OpBuilder(op).input("diff_dst", f32, Dims{4, 3})),
            "TanhBackward \"op0\": input diff_dst has shape [4, 3], allowed is [2, ?], the shape of src/dst");
}

OpBuilder binary(OpKind kind, Dims a, Dims b) {
  return an_op(kind).input("src_0", f32, std::move(a)).input("src_1", f32, std::move(b)).output("dst", f32);
}

Dims broadcast(Dims a, Dims b) { return shapes_of(binary(OpKind::Multiply, std::move(a), std::move(b))).at("dst"); }

TEST(BinarySchemas, ShapesBroadcastAsInNumPy) {
  EXPECT_EQ(broadcast({2, 3}, {2, 3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast({2, 3}, {3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast({2, 1}, {4, 1, 3}), (Dims{4, 2, 3}));
  EXPECT_EQ(broadcast({}, {4, 5}), (Dims{4, 5}));
  EXPECT_EQ(broadcast({0, 3}, {1, 3}), (Dims{0, 3}));
  EXPECT_EQ(broadcast({kUnknownDim, 3}, {2, 1}), (Dims{2, 3}));
  EXPECT_EQ(broadcast({kUnknownDim}, {1}), (Dims{kUnknownDim}));
  EXPECT_EQ(broadcast({kUnknownDim}, {kUnknownDim}), (Dims{kUnknownDim}));
  EXPECT_EQ(error_of(binary(OpKind::Add, {2, 3}, {4})),
            "Add \"op0\": shapes [2, 3] and [4] do not broadcast, allowed is equal extents or 1");
  EXPECT_THAT(error_of(binary(OpKind::Add, {0}, {2})), HasSubstr("do not broadcast"));
}

TEST(BinarySchemas, AutoBroadcastNoneAsksForEqualShapes) {
  EXPECT_EQ(error_of(binary(OpKind::Add, {2, 3}, {3}).attr("auto_broadcast", "none")),
            "Add \"op0\": input src_1 has shape [3], allowed is [2, 3], the shape of src_0, because auto_broadcast is none");
  EXPECT_EQ(error_of(binary(OpKind::Add, {2, 3}, {2, 3}).attr("auto_broadcast", "none")), "");
}

TEST(BinarySchemas, AddAndSubtractTakeAnyMix) {
  const auto error = [](OpKind kind, DataType a, DataType b, DataType c) {
    return error_of(an_op(kind).input("src_0", a).input("src_1", b).output("dst", c));
  };
  for (OpKind kind : {OpKind::Add, OpKind::Subtract}) {
    EXPECT_EQ(error(kind, s32, bf16, f16), "");
    EXPECT_EQ(error(kind, f64, f64, f64), "");
    EXPECT_THAT(error(kind, f64, f32, f64), HasSubstr("allowed is f64 with f64 only"));
  }
  EXPECT_EQ(error(OpKind::Multiply, bf16, bf16, f32), "");
  EXPECT_EQ(error(OpKind::Divide, bf16, f32, bf16), "");
  EXPECT_EQ(error(OpKind::Divide, s32, s32, s32), "");
  EXPECT_THAT(error(OpKind::Divide, s32, f32, f32), HasSubstr("s32 with s32 only"));
  EXPECT_THAT(error(OpKind::Maximum, f32, bf16, f32), HasSubstr("input src_1 is bf16, allowed is f32, the type of src_0"));
}

TEST(BinarySchemas, GreaterEqualGivesBooleans) {
  OpBuilder op(OpKind::GreaterEqual);
  op.input("src_0", s32, Dims{2, 1}).input("src_1", s32, Dims{3});
  EXPECT_EQ(shapes_of(OpBuilder(op).output("dst", DataType::boolean)), (Shapes{{"dst", {2, 3}}}));
  EXPECT_THAT(error_of(op.output("dst", f32)), HasSubstr("output dst is f32, allowed is boolean"));
}

OpBuilder select(Dims cond, Dims a, Dims b) {
  return an_op(OpKind::Select)
      .input("cond", DataType::boolean, std::move(cond))
      .input("src_0", f32, std::move(a))
      .input("src_1", f32, std::move(b))
      .output("dst", f32);
}

TEST(SelectSchema, TheConditionBroadcastsOneWay) {
  EXPECT_EQ(shapes_of(select({1, 3}, {2, 3}, {})), (Shapes{{"dst", {2, 3}}}));
  EXPECT_EQ(shapes_of(select({3}, {2, 1}, {3})), (Shapes{{"dst", {2, 3}}}));
  EXPECT_EQ(error_of(select({2, 3}, {3}, {3})),
            "Select \"op0\": input cond has shape [2, 3], allowed is one that broadcasts to [3]");
  EXPECT_THAT(error_of(select({3}, {2, 3}, {2, 3}).attr("auto_broadcast", "none")),
              HasSubstr("because auto_broadcast is none"));
}

TEST(BiasSchemas, TheBiasRunsAlongTheChannels) {
  const auto bias_add = [](const char* format, int64_t bias) {
    return an_op(OpKind::BiasAdd)
        .attr("data_format", format)
        .input("src", f32, Dims{2, 3, 4})
        .input("bias", f32, Dims{bias})
        .output("dst", f32);
  };
  EXPECT_EQ(error_of(bias_add("NCX", 3)), "");
  EXPECT_EQ(error_of(bias_add("NXC", 4)), "");
  EXPECT_EQ(error_of(bias_add("NXC", 3)), "BiasAdd \"op0\": input bias has shape [3], allowed is [4], the channels of src");
  const auto backward = an_op(OpKind::BiasAddBackward)
                            .attr("data_format", "NCX")
                            .input("diff_dst", f32, Dims{2, 3, 4, 4})
                            .output("diff_bias", f32);
  EXPECT_EQ(shapes_of(backward), (Shapes{{"diff_bias", {3}}}));
}

TEST(PReLUSchemas, TheSlopeIsPerChannelOrBroadcasts) {
  const auto prelu = [](Dims slope, bool per_channel) {
    return an_op(OpKind::PReLU)
        .attr("data_format", "NCX")
        .attr("per_channel_broadcast", per_channel)
        .input("src", f32, Dims{2, 3, 4})
        .input("slope", f32, std::move(slope))
        .output("dst", f32);
  };
  EXPECT_EQ(error_of(prelu({3}, true)), "");
  EXPECT_EQ(error_of(prelu({1}, true)), "");
  EXPECT_THAT(error_of(prelu({4}, true)), HasSubstr("input slope has shape [4], allowed is [3], the channels of src"));
  EXPECT_EQ(error_of(prelu({4}, false)), "");
  EXPECT_THAT(error_of(prelu({3}, false)), HasSubstr("allowed is one that broadcasts to [2, 3, 4]"));
  const auto scalar = an_op(OpKind::PReLU).input("src", f32, Dims{}).input("slope", f32, Dims{8}).output("dst", f32);
  EXPECT_THAT(error_of(scalar), HasSubstr("input slope has shape [8], allowed is [1] for a scalar src"));
  const auto backward = an_op(OpKind::PReLUBackward)
                            .attr("data_format", "NCX")
                            .input("src", f32, Dims{2, 3, 4})
                            .input("slope", f32, Dims{3})
                            .input("diff_dst", f32, Dims{2, 3, 4})
                            .output("diff_src", f32)
                            .output("diff_slope", f32);
  EXPECT_EQ(shapes_of(backward), (Shapes{{"diff_src", {2, 3, 4}}, {"diff_slope", {3}}}));
}

TEST(BinarySchemas, ArithmeticTakesIntegersAndLongOnesAmongThemselves) {
  for (const OpKind kind : {OpKind::Add, OpKind::Subtract, OpKind::Multiply, OpKind::Divide}) {
    const auto error = [&](DataType a, DataType b, DataType dst) {
      return error_of(OpBuilder(kind).input("src_0", a).input("src_1", b).output("dst", dst));
    };
    EXPECT_EQ(error(DataType::s64, DataType::s64, DataType::s64), "");
    EXPECT_EQ(error(DataType::s32, DataType::s32, DataType::s32), "");
    EXPECT_THAT(error(DataType::s64, DataType::f32, DataType::f32), HasSubstr("s64 with s64 only"));
    EXPECT_THAT(error(DataType::s64, DataType::s64, DataType::s32), HasSubstr("s64 with s64 only"));
    for (const DataType type : {DataType::u8, DataType::s8, DataType::s16, DataType::u16, DataType::u32, DataType::u64}) {
      EXPECT_EQ(error(type, type, type), "");
      EXPECT_THAT(error(type, type, DataType::s32), HasSubstr(join(name_of(type), " with ", name_of(type), " only")));
    }
  }
}

TEST(BinarySchemas, ComparisonsTakeNumbersAndGiveBooleans) {
  for (const OpKind kind :
       {OpKind::Equal, OpKind::NotEqual, OpKind::Less, OpKind::LessEqual, OpKind::Greater, OpKind::GreaterEqual}) {
    const auto op = [&](DataType type) {
      return OpBuilder(kind).input("src_0", type, Dims{4, 1}).input("src_1", type, Dims{3}).output("dst", DataType::boolean);
    };
    EXPECT_EQ(shapes_of(op(DataType::s64)), (Shapes{{"dst", {4, 3}}})) << name_of(kind);
    EXPECT_EQ(error_of(op(DataType::f64)), "") << name_of(kind);
    const bool of_booleans = kind == OpKind::Equal || kind == OpKind::NotEqual;
    EXPECT_EQ(error_of(op(DataType::boolean)).empty(), of_booleans) << name_of(kind);
  }
}

TEST(BinarySchemas, BitsAreThoseOfIntegersOfOneType) {
  for (const OpKind kind : {OpKind::BitwiseAnd, OpKind::BitwiseOr, OpKind::BitwiseXor, OpKind::ShiftLeft, OpKind::ShiftRight}) {
    const auto error = [&](DataType a, DataType b) {
      return error_of(OpBuilder(kind).input("src_0", a, Dims{4, 1}).input("src_1", b, Dims{3}).output("dst", a));
    };
    for (const DataType type : whole_integers()) EXPECT_EQ(error(type, type), "") << name_of(kind) << name_of(type);
    EXPECT_THAT(error(f32, f32), HasSubstr("input src_0 is f32"));
    EXPECT_THAT(error(DataType::s4, DataType::s4), HasSubstr("input src_0 is s4"));
    EXPECT_THAT(error(s32, DataType::s64), HasSubstr("allowed is s32, the type of src_0"));
  }
}

TEST(BinarySchemas, LogicIsOfBooleans) {
  for (const OpKind kind : {OpKind::LogicalAnd, OpKind::LogicalOr})
    EXPECT_THAT(error_of(OpBuilder(kind).input("src_0", f32).input("src_1", f32).output("dst", f32)), HasSubstr("boolean"));
  EXPECT_EQ(
      shapes_of(OpBuilder(OpKind::LogicalNot).input("src", DataType::boolean, Dims{4, 1}).output("dst", DataType::boolean)),
      (Shapes{{"dst", {4, 1}}}));
}

TEST(TypeCastSchema, CastsFromAndToIntegersAndBooleans) {
  for (const DataType integer : {DataType::s32, DataType::s64, DataType::s16, DataType::u8, DataType::s8, DataType::u16,
                                 DataType::u32, DataType::u64, DataType::boolean})
    for (const DataType other :
         {f32, DataType::bf16, DataType::f64, DataType::s32, DataType::s64, DataType::u64, DataType::boolean}) {
      const bool legal = integer != other;
      EXPECT_EQ(error_of(an_op(OpKind::TypeCast).input("src", integer).output("dst", other)).empty(), legal);
      EXPECT_EQ(error_of(an_op(OpKind::TypeCast).input("src", other).output("dst", integer)).empty(), legal);
    }
}

TEST(TypeCastSchema, CastsBetweenDifferentFloats) {
  const auto error = [](DataType from, DataType to) {
    return error_of(an_op(OpKind::TypeCast).input("src", from).output("dst", to));
  };
  for (const auto& [from, to] :
       {std::pair{f32, bf16}, {bf16, f32}, {f16, f32}, {f32, f16}, {f64, f32}, {f32, f64}, {f64, bf16}})
    EXPECT_EQ(error(from, to), "");
  EXPECT_THAT(error(f32, f32), HasSubstr("allowed is two different types"));
  EXPECT_THAT(error(bf16, f16), HasSubstr("no float of 16 or 8 bits to another one"));
  EXPECT_THAT(error(f16, bf16), HasSubstr("no float of 16 or 8 bits to another one"));
}

OpBuilder dropout() {
  return an_op(OpKind::Dropout)
      .input("src", f32, Dims{2, 3})
      .input("seed", DataType::s64, Dims{})
      .input("offset", DataType::s64, Dims{})
      .input("probability", f32, Dims{})
      .output("dst", f32);
}

TEST(DropoutSchema, TheMaskIsOptional) {
  EXPECT_EQ(error_of(dropout()), "");
  EXPECT_EQ(shapes_of(dropout().output("mask", DataType::u8)), (Shapes{{"dst", {2, 3}}, {"mask", {2, 3}}}));
  EXPECT_THAT(error_of(dropout().output("mask", f32)), HasSubstr("output mask is f32, allowed is u8"));
  EXPECT_THAT(error_of(dropout().without_input("seed").input("seed", DataType::s64, Dims{2})),
              HasSubstr("input seed has shape [2], allowed is [] or [1]"));
}

TEST(DropoutSchema, APartKnowsItsPlaceInTheWhole) {
  const auto part = [] { return dropout().input("first", DataType::s64, Dims{}); };
  EXPECT_EQ(error_of(part().attr("steps", std::vector<int64_t>{100, 1})), "");
  EXPECT_THAT(error_of(part()), HasSubstr("first is absent because steps is not given"));
  EXPECT_THAT(error_of(dropout().attr("steps", std::vector<int64_t>{100, 1})),
              HasSubstr("first (port 4) is missing: it is required because steps is given"));
  EXPECT_THAT(error_of(part().attr("steps", std::vector<int64_t>{1})),
              HasSubstr("attribute steps has 1 entries, allowed is one per axis of src [2, 3]"));
}

TEST(GenIndexSchema, TheAxisIsInRange) {
  const auto gen_index = [](int axis) {
    return an_op(OpKind::GenIndex).attr("axis", axis).input("src", bf16, Dims{2, 3}).output("dst", s32);
  };
  EXPECT_EQ(shapes_of(gen_index(-2)), (Shapes{{"dst", {2, 3}}}));
  EXPECT_EQ(error_of(gen_index(2)), "GenIndex \"op0\": attribute axis is 2, allowed is -2..1");
}

TEST(MarkerSchemas, EndAndWildcardTakeAnyType) {
  EXPECT_EQ(error_of(an_op(OpKind::End).input("src", DataType::boolean, Dims{2})), "");
  EXPECT_EQ(error_of(an_op(OpKind::Wildcard)), "");
  EXPECT_EQ(
      error_of(an_op(OpKind::Wildcard).input("src", f32).input("src", DataType::s4).output("dst", f64).output("dst", s32)), "");
}

}  // namespace
}  // namespace lamina::testing
