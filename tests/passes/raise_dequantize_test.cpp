// (src - zps) * scales in small ops, in groups that reshapes make, with counterparts in which one condition is broken.
#include "raise_test_support.h"

namespace lamina::testing {
namespace {

constexpr DataType s8 = DataType::s8;

struct Dequantized {
  const char* name;
  Dims src, divided, scales, factor;  // shapes: of src, of its groups, of the scales, and of these beside the groups
  std::string qtype;
  Axes group_shape = {};
  int64_t axis = 0;
};

const std::vector<Dequantized> kForms{
    {"groups_of_rows", {4, 8}, {4, 2, 4}, {4, 2}, {4, 2, 1}, "per_group", {1, 4}},
    {"groups_of_columns", {8, 3}, {2, 4, 3}, {2, 3}, {2, 1, 3}, "per_group", {4, 1}},
    {"groups_of_one_row", {4, 8}, {4, 8}, {4, 1}, {4, 1}, "per_group", {1, 8}},
    {"channels", {4, 8}, {4, 8}, {4}, {4, 1}, "per_channel", {}, 0},
    {"last_channels", {4, 8}, {4, 8}, {8}, {8}, "per_channel", {}, 1},
    {"tensor", {4, 8}, {4, 8}, {1}, {1}, "per_tensor"},
    {"three_dims", {2, 3, 8}, {2, 3, 8}, {2, 3, 1}, {2, 3, 1}, "per_group", {1, 1, 8}},
};

V cast_to(V integers, DataType dtype, bool by_dequantize) {
  Writer& w = *integers.writer;
  if (!by_dequantize) return w.cast(integers, dtype);
  const V floats = w.op(OpKind::Dequantize, {integers}, {{"scales", std::vector<float>{1}}}, f32);
  return dtype == f32 ? floats : w.cast(floats, dtype);
}

struct Spelling {
  DataType dtype = f32;
  bool by_dequantize = false, has_zero_points = true, reshapes_first = true;
};

V spelled(Writer& w, const Dequantized& form, const Spelling& spelling) {
  const auto shaped = [&](V value, const Dims& from, const Dims& to) { return from == to ? value : w.reshape(value, to); };
  const auto floats = [&](const Dims& from, const Dims& to) {
    const V integers = w.input(from, s8);
    if (spelling.reshapes_first) return cast_to(shaped(integers, from, to), spelling.dtype, spelling.by_dequantize);
    return shaped(cast_to(integers, spelling.dtype, spelling.by_dequantize), from, to);
  };
  V real = floats(form.src, form.divided);
  if (spelling.has_zero_points) real = real - floats(form.scales, form.factor);
  return shaped(real * shaped(w.input(form.scales), form.scales, form.factor), form.divided, form.src);
}

class RaiseDequantize : public ::testing::TestWithParam<Dequantized> {};

void expect_form(const Op& op, const Dequantized& form, bool has_zero_points) {
  EXPECT_EQ(op.attribute<std::string>("qtype"), form.qtype);
  EXPECT_EQ(op.inputs.size() > 2 && op.inputs[2] != kNoValue, has_zero_points);
  if (form.qtype == "per_channel") {
    EXPECT_EQ(op.attribute<int64_t>("axis"), form.axis);
  }
  if (form.qtype == "per_group") {
    EXPECT_EQ(op.attribute<std::vector<int64_t>>("group_shape"), form.group_shape);
  }
}

TEST_P(RaiseDequantize, EverySpellingBecomesOneOp) {
  for (const DataType dtype : {f32, DataType::bf16, DataType::f16}) {
    for (const int bits : {0, 1, 2, 3, 4, 5, 6, 7}) {
      const Spelling spelling{dtype, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
      Writer w(GetParam().src, dtype);
      spelled(w, GetParam(), spelling);
      expect_form(expect_raised(w, "DynamicDequantize", 0).ops()[0], GetParam(), spelling.has_zero_points);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, RaiseDequantize, ::testing::ValuesIn(kForms),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(RaiseDequantize, NotWithZeroPointsOfOtherGroups) {
  Writer w({4, 4});
  const V src = w.cast(w.input({4, 4}, s8), f32), zero_points = w.cast(w.input({4}, s8), f32);
  (src - zero_points) * w.reshape(w.input({4}), {4, 1});
  expect_unchanged(w);
}

TEST(RaiseDequantize, NotWithWiderZeroPoints) {
  Writer w({4, 8}, DataType::bf16);
  const V src = w.cast(w.input({4, 8}, s8), DataType::bf16), zero_points = w.cast(w.input({1}, DataType::s32), DataType::bf16);
  (src - zero_points) * w.input({1});
  expect_unchanged(w);
}

TEST(RaiseDequantize, KeepsRoundingsOfTheResult) {
  Writer w({4, 8});
  const V product = w.cast(w.reshape(w.input({4, 8}, s8), {4, 2, 4}), f32) * w.reshape(w.input({4, 2}), {4, 2, 1});
  w.reshape(w.cast(w.cast(product, DataType::bf16), f32), {4, 8});
  EXPECT_EQ(kinds_of(raised(w.g.finish())), "StaticReshape StaticReshape DynamicDequantize TypeCast TypeCast StaticReshape");
}

TEST(RaiseDequantize, NotOfACastThatScales) {
  Writer w({4, 8});
  w.op(OpKind::Dequantize, {w.input({4, 8}, s8)}, {{"scales", std::vector<float>{2}}}, f32) * w.input({4, 1});
  expect_unchanged(w);
}

TEST(RaiseDequantize, GroupsMayStayApart) {
  Writer w({4, 8});
  const V product = w.cast(w.reshape(w.input({4, 8}, s8), {4, 2, 4}), f32) * w.reshape(w.input({4, 2}), {4, 2, 1});
  w.reshape(product, {8, 4});
  EXPECT_EQ(kinds_of(raised(w.g.finish())), "StaticReshape StaticReshape DynamicDequantize StaticReshape");
}

}  // namespace
}  // namespace lamina::testing
