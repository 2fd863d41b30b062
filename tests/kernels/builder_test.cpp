// The builder assigns each node a level and a phase; the verifier rejects kernels that no backend could run.
#include "kernels/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interface/status.h"
#include "support/foreign_locale.h"

namespace lamina::kernel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// x, dst [4 rows | 8]
struct RowKernel {
  Builder k{"row_kernel", {4, 8}, 1};
  int x = k.add_arg({.name = "x", .strides = {8, 1}, .table = {}});
  int scale = k.add_arg({.name = "scale", .strides = {1, 0}, .table = {}});
  int dst = k.add_arg({.name = "dst", .output = true, .strides = {8, 1}, .table = {}});
};

TEST(Builder, LoadsAreRowValuesWhereTheirTensorDoesNotVaryInTheRow) {
  RowKernel r;
  EXPECT_TRUE(r.k.node(r.k.load(r.x)).per_element);
  EXPECT_FALSE(r.k.node(r.k.load(r.scale)).per_element);
}

TEST(Builder, AReductionIsARowValueOnePhaseLater) {
  RowKernel r;
  const Value x = r.k.load(r.x);
  const Value total = r.k.reduce(Reduction::sum, x);
  EXPECT_FALSE(r.k.node(total).per_element);
  EXPECT_EQ(r.k.node(total).phase, 1);
  const Value centered = x - total / 8.0;
  EXPECT_TRUE(r.k.node(centered).per_element);
  EXPECT_EQ(r.k.node(centered).phase, 1);
  EXPECT_EQ(r.k.node(r.k.reduce(Reduction::sum, centered)).phase, 2);
}

TEST(Builder, MomentsTakeTwoWalks) {
  RowKernel r;
  const auto moments = r.k.moments(r.k.load(r.x));
  EXPECT_EQ(r.k.node(moments.variance).phase, 2);
  r.k.store(r.k.center(r.k.load(r.x), moments), r.dst);
  EXPECT_EQ(r.k.finish().phase_count(), 3);
}

TEST(Builder, FinishDropsWhatNobodyNeeds) {
  RowKernel r;
  const Value x = r.k.load(r.x);
  exp(x);  // never stored
  r.k.store(x * 2.0, r.dst);
  EXPECT_EQ(r.k.finish().nodes.size(), 4U);  // load, constant, multiply, store
}

TEST(Print, ShowsOneLineANode) {
  RowKernel r;
  const Value x = r.k.load(r.x);
  r.k.store(x - r.k.reduce(Reduction::maximum, x), r.dst);
  EXPECT_EQ(print(r.k.finish()),
            "kernel row_kernel over [4 | 8]\n"
            "  in x : f32 strides [8 | 1]\n"
            "  in scale : f32 strides [1 | 0]\n"
            "  out dst : f32 strides [8 | 1]\n"
            "  %0 = load x : f32 phase 0\n"
            "  %1 = reduce_maximum %0 : f32 row phase 1\n"
            "  %2 = subtract %0, %1 : f32 phase 1\n"
            "  store %2, dst phase 1\n");
}

TEST(Print, LeavesOutNamesAndWhatIsKnownAtRunTimeOnly) {
  RowKernel r;
  r.k.store(r.k.load(r.x), r.dst);
  EXPECT_THAT(print(r.k.finish(), false), HasSubstr("over [* | *]\n  in a0 : f32 strides [* | 1]"));
}

TEST(Print, KeepsTheRowSizeOfAReduction) {
  RowKernel r;
  const Value x = r.k.load(r.x);
  r.k.store(x - r.k.reduce(Reduction::sum, x), r.dst);
  EXPECT_THAT(print(r.k.finish(), false), HasSubstr("over [* | 8]\n"));
}

TEST(Builder, StoresWithoutRoundingTwice) {
  RowKernel r;
  r.k.store(r.k.round_to(r.k.load(r.x), DataType::f32), r.dst);
  EXPECT_THAT(print(r.k.finish()), Not(HasSubstr("round_to")));
  RowKernel other;
  other.k.store(other.k.round_to(other.k.load(other.x), DataType::bf16), other.dst);
  EXPECT_THAT(print(other.k.finish()), HasSubstr("round_to"));
}

TEST(Print, KnowsNoLocale) {
  const auto text = [] {
    Builder k("big", {40000, 16384}, 1);
    const int x = k.add_arg({.name = "x", .strides = {16384, 1}, .table = {}});
    const int dst = k.add_arg({.name = "dst", .output = true, .strides = {16384, 1}, .table = {}});
    k.store(k.load(x) * 1.5 + 0.1 + 123456.0, dst);
    return print(k.finish());
  };
  const std::string expected = text();
  EXPECT_THAT(expected, HasSubstr("[40000 | 16384]"));
  EXPECT_THAT(expected, HasSubstr("constant 0.10000000000000001 "));
  const ::lamina::testing::GroupedNumbers grouped;
  EXPECT_EQ(text(), expected);
}

template <typename Work>
std::string complaint(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Builder, RefusesOperandsOfDifferentTypes) {
  RowKernel r;
  const Value x = r.k.load(r.x), wide = r.k.cast(x, Type::f64);
  EXPECT_THAT(complaint([&] { x + wide; }), HasSubstr("add of f32, f64"));
  EXPECT_THAT(complaint([&] { r.k.select(x, x, x); }), HasSubstr("select of f32, f32, f32"));
  EXPECT_THAT(complaint([&] { r.k.map(MapOp::logical_not, x); }), HasSubstr("logical_not of f32"));
  EXPECT_THAT(complaint([&] { exp(r.k.index({1, 1})); }), HasSubstr("exp of s64"));
  EXPECT_THAT(complaint([&] { r.k.center(wide, r.k.moments(x)); }), HasSubstr("its type is f64, with operands of f64, f32"));
  EXPECT_THAT(complaint([&] { r.k.store(r.k.index({1, 1}), r.dst); }), HasSubstr("stores s64 as f32"));
  EXPECT_EQ(complaint([&] { x + r.k.cast(wide, Type::f32); }), "");
}

TEST(MapOps, NamesAndCosts) {
  const auto cost = [](MapOp op) { return cost_of(Node{.kind = NodeKind::map, .op = op, .coefficients = {}}); };
  EXPECT_STREQ(name_of(MapOp::add), "add");
  EXPECT_STREQ(name_of(MapOp::philox_word), "philox_word");
  EXPECT_EQ(cost(MapOp::exp), CostClass::function);
  EXPECT_EQ(cost(MapOp::power), CostClass::function);
  EXPECT_EQ(cost(MapOp::square_root), CostClass::division);
  EXPECT_EQ(cost(MapOp::philox_word), CostClass::random);
  EXPECT_EQ(cost(MapOp::fma), CostClass::simple);
}

std::string fault(Kernel kernel) {
  try {
    verify(kernel);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Verify, RefusesBrokenKernels) {
  RowKernel r;
  r.k.store(r.k.load(r.x) + 1.0, r.dst);
  const Kernel good = r.k.finish();
  EXPECT_EQ(fault(good), "");
  Kernel missing_operand = good;
  missing_operand.nodes[2].operands[1] = -1;
  EXPECT_THAT(fault(missing_operand), HasSubstr("%2 has the wrong number of operands"));
  Kernel forward = good;
  forward.nodes[2].operands[1] = 3;
  EXPECT_THAT(fault(forward), HasSubstr("%2 uses a node that comes after it"));
  Kernel writes_input = good;
  writes_input.nodes[3].arg = 0;
  EXPECT_THAT(fault(writes_input), HasSubstr("reads an output or writes an input"));
  Kernel no_arg = good;
  no_arg.nodes[0].arg = 7;
  EXPECT_THAT(fault(no_arg), HasSubstr("names an arg that does not exist"));
  EXPECT_THAT(fault(no_arg), HasSubstr(" a7"));
  Kernel short_strides = good;
  short_strides.args[0].strides.pop_back();
  EXPECT_THAT(fault(short_strides), HasSubstr("arg x has not one stride per dim"));
  Kernel early = good;
  early.nodes[1].phase = 1;
  EXPECT_THAT(fault(early), HasSubstr("runs before its operand is known"));
}

TEST(Verify, RefusesWrongTypesAndLevels) {
  RowKernel r;
  const Value x = r.k.load(r.x);
  const Value total = r.k.reduce(Reduction::sum, x);
  const Value centered = x - total;
  const Value scale = r.k.load(r.scale);
  r.k.store(centered + scale, r.dst);
  const Kernel good = r.k.finish();  // load x, reduce, subtract, load scale, add, store
  EXPECT_EQ(fault(good), "");
  Kernel mixed = good;
  mixed.args[1].dtype = DataType::f64;
  mixed.nodes[3].type = Type::f64;
  EXPECT_THAT(fault(mixed), HasSubstr("%4 is add of f32, f64"));
  Kernel wrong_load = good;
  wrong_load.args[0].dtype = DataType::s32;
  EXPECT_THAT(fault(wrong_load), HasSubstr("%0 loads another type than its arg's"));
  Kernel wrong_result = good;
  wrong_result.nodes[2].type = Type::f64;
  EXPECT_THAT(fault(wrong_result), HasSubstr("%2 says that its type is f64"));
  Kernel wrong_reduction = good;
  wrong_reduction.nodes[1].type = Type::f64;
  EXPECT_THAT(fault(wrong_reduction), HasSubstr("%1 says that its type is f64, with operands of f32"));
  Kernel row_of_elements = good;
  row_of_elements.nodes[4].per_element = false;
  EXPECT_THAT(fault(row_of_elements), HasSubstr("%4 says that it does not vary along the row"));
  Kernel element_of_rows = good;
  element_of_rows.nodes[3].per_element = true;
  EXPECT_THAT(fault(element_of_rows), HasSubstr("%3 says that it varies along the row"));
  Kernel early = good;
  early.nodes[1].phase = 0;
  EXPECT_THAT(fault(early), HasSubstr("%1 runs before its operand is known"));
}

TEST(Verify, RefusesSumsOfEntriesWithoutALegalOrder) {
  RowKernel r;
  const int order =
      r.k.add_arg({.name = "order", .dtype = DataType::s64, .strides = {0, 0}, .table = {}, .entries = 9, .entry_stride = 1});
  const Value begin = r.k.constant(2, Type::s64), sum = r.k.sum_entries(r.x, order, begin, r.k.constant(5, Type::s64), 3);
  r.k.store(r.k.cast(sum, Type::f32), r.dst);
  const Kernel good = r.k.finish();
  EXPECT_EQ(fault(good), "");
  EXPECT_TRUE(good.nodes[2].per_element);
  EXPECT_THAT(print(good), HasSubstr("  in order : s64 strides [0 | 0] 9 entries by 1\n"));
  EXPECT_THAT(print(good), HasSubstr("  %2 = sum_entries %0, %1, x, order : f64 phase 0\n"));
  EXPECT_THAT(print(good, false), HasSubstr(" * entries by 1\n"));
  Kernel no_order = good;
  no_order.nodes[2].order = -1;
  EXPECT_THAT(fault(no_order), HasSubstr("%2 has no order, or one that is not an input of s64"));
  Kernel order_of_floats = good;
  order_of_floats.nodes[2].order = r.x;
  EXPECT_THAT(fault(order_of_floats), HasSubstr("%2 has no order, or one that is not an input of s64"));
  Kernel narrow = good;
  narrow.nodes[2].type = Type::f32;
  EXPECT_THAT(fault(narrow), HasSubstr("%2 is a sum of entries whose type is not f64"));
}

// `count` rows of dst, 8 f32 each: the sum of `taps` neighbouring entries of the table, from the one that an s64 of ids names.
Kernel reads_by_index(int64_t count, int64_t entries, int taps) {
  Builder k{"reads_by_index", {count, 8}, 1};
  const int ids = k.add_arg({.name = "ids", .dtype = DataType::s64, .strides = {1, 0}, .table = {}});
  const int table = k.add_arg({.name = "table", .strides = {0, 1}, .table = {}, .entries = entries, .entry_stride = 8});
  const int dst = k.add_arg({.name = "dst", .output = true, .strides = {8, 1}, .table = {}});
  const Value id = k.load(ids);
  Value sum = k.load_entry(table, id);
  for (int tap = 1; tap < taps; ++tap) sum = sum + k.load_entry(table, id + static_cast<double>(tap));
  k.store(sum, dst);
  return k.finish();
}

TEST(MovedBytes, CountEachEntryThatIsReadButNoneTwice) {
  const auto of_table = [](const Kernel& kernel, int64_t count) { return moved_bytes(kernel) - count * (8 + 8 * 4); };
  EXPECT_EQ(of_table(reads_by_index(10, 1000, 1), 10), 10 * 8 * 4);
  EXPECT_EQ(of_table(reads_by_index(10, 1000, 3), 10), 3 * 10 * 8 * 4);
  EXPECT_EQ(of_table(reads_by_index(5000, 1000, 3), 5000), 1000 * 8 * 4) << "the whole table";
}

}  // namespace
}  // namespace lamina::kernel
