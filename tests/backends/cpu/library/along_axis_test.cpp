// TopK, CumSum, CumProd and linear recurrences on the CPU: every type, axis and layout against the reference, with the same
// bits for any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/library/library_check.h"
#include "backends/cpu/support/along_axis_values.h"
#include "interface/element.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, s64 = DataType::s64;

struct Case {
  DataType dtype = f32;
  Dims shape{5, 40};
  int64_t axis = -1, k = 7;
  bool largest = true;
  Dims strides = {};
  std::vector<DataType> outputs = {};
};

void expect_in_order(const Case& c) {
  SCOPED_TRACE(join(name_of(c.dtype), describe(c.shape), " axis ", c.axis, " k ", c.k));
  GraphBuilder g;
  const uint64_t src = g.input(c.dtype, c.shape, c.strides);
  const std::map<uint64_t, Buffer> given{{src, repeated_values(g.tensor(src))}};
  const auto outputs = c.outputs.empty() ? std::vector<DataType>{c.dtype, s64} : c.outputs;
  g.multi(OpKind::TopK, {src}, {{"axis", c.axis}, {"k", c.k}, {"largest", c.largest}}, outputs);
  expect_library_matches_reference(g.finish(), 0, given);
}

TEST(TopKStep, OrdersEveryType) {
  for (const DataType dtype : kTypesAlongAnAxis)
    for (const bool largest : {true, false})
      for (const int64_t k : {1, 7, 40}) expect_in_order({.dtype = dtype, .k = k, .largest = largest});
}

TEST(TopKStep, OrdersAlongAnyAxisOfAnyLayout) {
  for (const int64_t axis : {0, 1, 2}) {
    expect_in_order({.shape = {6, 9, 5}, .axis = axis, .k = 4});
    expect_in_order({.shape = {6, 9, 5}, .axis = axis, .k = 5, .strides = {1, 40, 7}});
  }
  expect_in_order({.shape = {3000, 8}, .k = 2});
  expect_in_order({.shape = {9000}, .k = 9000});
}

TEST(TopKStep, LeavesOutWhatNobodyReads) {
  expect_in_order({.outputs = {f32, DataType::undef}});
  expect_in_order({.outputs = {DataType::undef, s64}});
}

// The largest and smallest integers, which f64 does not have.
TEST(TopKStep, OrdersLongIntegersExactly) {
  GraphBuilder g;
  const uint64_t src = g.input(s64, {4});
  Buffer buffer = buffer_for(g.tensor(src));
  const int64_t values[] = {INT64_MAX - 1, INT64_MIN, INT64_MAX, 0};
  for (int64_t i = 0; i < 4; ++i) store_element(buffer.data(), i, values[i]);
  const std::vector<uint64_t> made = g.multi(OpKind::TopK, {src}, {{"k", int64_t{4}}}, {s64, s64});
  const LibraryRun run = expect_library_matches_reference(g.finish(), 0, {{src, buffer}});
  const int64_t order[] = {2, 0, 3, 1};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(load_element<int64_t>(run.buffers.at(made[0]).data(), i), values[order[i]]);
    EXPECT_EQ(load_element<int64_t>(run.buffers.at(made[1]).data(), i), order[i]);
  }
}

struct RunningCase {
  DataType dtype = f32;
  Dims shape{5, 40};
  int64_t axis = -1;
  bool exclusive = false, reverse = false;
  Dims strides = {};
  OpKind kind = OpKind::CumSum;
};

void expect_running(const RunningCase& c) {
  SCOPED_TRACE(join(name_of(c.dtype), describe(c.shape), " axis ", c.axis));
  GraphBuilder g;
  const uint64_t src = g.input(c.dtype, c.shape, c.strides);
  g.op(c.kind, {src}, {{"axis", c.axis}, {"exclusive", c.exclusive}, {"reverse", c.reverse}}, c.dtype);
  expect_library_matches_reference(g.finish(), 1e-7);
}

TEST(CumSumStep, AddsEveryType) {
  for (const DataType dtype : kTypesAlongAnAxis)
    for (const bool exclusive : {true, false})
      for (const bool reverse : {true, false}) expect_running({.dtype = dtype, .exclusive = exclusive, .reverse = reverse});
}

TEST(CumProdStep, MultipliesEveryType) {
  for (const DataType dtype : kTypesAlongAnAxis)
    for (const bool exclusive : {true, false})
      for (const bool reverse : {true, false})
        expect_running({.dtype = dtype, .shape = {5, 12}, .exclusive = exclusive, .reverse = reverse, .kind = OpKind::CumProd});
  expect_running({.shape = {6, 9, 5}, .axis = 1, .reverse = true, .strides = {1, 40, 7}, .kind = OpKind::CumProd});
}

TEST(CumSumStep, AddsAlongAnyAxisOfAnyLayout) {
  for (const int64_t axis : {0, 1, 2}) {
    expect_running({.shape = {6, 9, 5}, .axis = axis});
    expect_running({.shape = {6, 9, 5}, .axis = axis, .reverse = true, .strides = {1, 40, 7}});
  }
  expect_running({.shape = {5000, 8}});
}

struct RecurrenceCase {
  DataType dtype = f32;
  Dims shape{5, 40};
  int64_t axis = -1;
  bool reverse = false;
  Dims strides = {};
};

void expect_recurrence(const RecurrenceCase& c) {
  SCOPED_TRACE(join(name_of(c.dtype), describe(c.shape), " axis ", c.axis, c.reverse ? " reverse" : ""));
  const Attributes attributes{{"axis", c.axis}, {"reverse", c.reverse}};
  GraphBuilder forward;
  forward.op(OpKind::LinearRecurrence, {forward.input(c.dtype, c.shape, c.strides), forward.input(c.dtype, c.shape)},
             attributes, c.dtype);
  expect_library_matches_reference(forward.finish(), 1e-5);
  GraphBuilder backward;
  const uint64_t diff_dst = backward.input(c.dtype, c.shape), factors = backward.input(c.dtype, c.shape, c.strides);
  backward.multi(OpKind::LinearRecurrenceBackward, {diff_dst, factors, backward.input(c.dtype, c.shape)}, attributes,
                 {c.dtype, c.dtype});
  expect_library_matches_reference(backward.finish(), 1e-5);
}

TEST(LinearRecurrenceStep, TakesEveryTypeOfFloats) {
  for (const DataType dtype : {f32, DataType::bf16, DataType::f16, DataType::f64})
    for (const bool reverse : {true, false}) expect_recurrence({.dtype = dtype, .reverse = reverse});
}

TEST(LinearRecurrenceStep, GoesAlongAnyAxisOfAnyLayout) {
  for (const int64_t axis : {0, 1, 2}) {
    expect_recurrence({.shape = {6, 9, 37}, .axis = axis});
    expect_recurrence({.shape = {6, 9, 37}, .axis = axis, .reverse = true, .strides = {1, 400, 7}});
  }
  expect_recurrence({.shape = {9}});
  expect_recurrence({.shape = {40, 3000}, .axis = 0});
  expect_recurrence({.shape = {0, 3}});
  expect_recurrence({.shape = {3, 0}});
}

}  // namespace
}  // namespace lamina::testing
