// ScatterAdd on the CPU: the reference's values, the same bits for any number of threads, any strides.
#include <gtest/gtest.h>

#include "backends/cpu/library/library_check.h"
#include "backends/cpu/support/index_buffers.h"
#include "interface/type_rules.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, s32 = DataType::s32, s64 = DataType::s64;

struct Case {
  DataType dtype = f32, type = s64;
  Dims table{50, 24}, indices{3, 7};
  int64_t axis = 0;
  Dims strides = {};  // of the data that is read
};

Dims replaced(Dims shape, int64_t axis, const Dims& indices) {
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.begin(), indices.end());
  return shape;
}

void expect_scattered(const Case& c) {
  GraphBuilder g;
  const int64_t extent = c.table[static_cast<size_t>(c.axis)];
  const auto src = g.input(c.dtype, replaced(c.table, c.axis, c.indices), c.strides), indices = g.input(c.type, c.indices);
  g.op(OpKind::ScatterAdd, {src, indices}, {{"axis", c.axis}, {"extent", extent}, {"ignore_index", int64_t{0}}});
  const Buffer data = indices_of(g.tensor(indices), some_indices(number_of(c.indices), extent));
  expect_library_matches_reference(g.finish(), 1e-6, {{indices, data}});
}

TEST(ScatterAdd, AddsInTheOrderOfTheIndices) {
  for (const DataType dtype : {f32, DataType::bf16, DataType::f16, DataType::f64})
    for (const int64_t axis : {0, 1}) expect_scattered({.dtype = dtype, .axis = axis});
}

TEST(ScatterAdd, ManyRowsAndLongOnes) {
  expect_scattered({.table = {13, 700}, .indices = {3000}});
  expect_scattered({.type = s32, .table = {5000, 1}, .indices = {40, 10}});
  expect_scattered({.table = {3, 5, 6}, .indices = {4}, .axis = 2});
}

TEST(ScatterAdd, OfStridedRows) { expect_scattered({.table = {6, 5}, .indices = {4}, .strides = {1, 9}}); }

TEST(ScatterAdd, OfNothingIsZero) {
  expect_scattered({.table = {5, 4}, .indices = {0}});
  expect_scattered({.table = {5, 0}, .indices = {3}});
}

}  // namespace
}  // namespace lamina::testing
