// GroupedMatMul on the CPU: against the reference, with the bits of a MatMul of each group.
#include <gtest/gtest.h>

#include <cstring>

#include "backends/cpu/library/library_check.h"
#include "backends/cpu/support/index_buffers.h"
#include "support/graph_builder.h"
#include "support/index_error.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, f64 = DataType::f64, s32 = DataType::s32;

struct Case {
  int64_t m = 100, k = 33, n = 50;
  std::vector<int64_t> ends{20, 20, 93, 100};
  bool transpose_b = false;
  DataType dtype = f32, dst = f32, offsets = s32;
  Dims src_strides = {}, weights_strides = {};
  double allowed = 2e-6;  // error, relative to the largest element
};

LibraryRun expect_right_groups(const Case& c) {
  GraphBuilder g;
  const auto groups = static_cast<int64_t>(c.ends.size());
  const uint64_t src = g.input(c.dtype, {c.m, c.k}, c.src_strides);
  const uint64_t weights = g.input(c.dtype, c.transpose_b ? Dims{groups, c.n, c.k} : Dims{groups, c.k, c.n}, c.weights_strides);
  const uint64_t offsets = g.input(c.offsets, {groups});
  g.op(OpKind::GroupedMatMul, {src, weights, offsets}, {{"transpose_b", c.transpose_b}}, c.dst);
  return expect_library_matches_reference(g.finish(), c.allowed, {{offsets, indices_of(g.tensor(offsets), c.ends)}});
}

TEST(GroupedProduct, OfEveryTypeAndLayout) {
  for (const bool transpose_b : {false, true}) {
    for (const DataType dtype : {f32, bf16, f16, f64}) {
      SCOPED_TRACE(name_of(dtype));
      expect_right_groups({.transpose_b = transpose_b, .dtype = dtype, .dst = dtype});
    }
    expect_right_groups({.transpose_b = transpose_b, .dtype = bf16, .dst = f32, .offsets = DataType::s64});
  }
  for (const DataType dtype : {f32, bf16})
    expect_right_groups({.ends = {60, 100}, .dtype = dtype, .src_strides = {1, 120}, .weights_strides = {4000, 2, 70}});
}

// Groups of columns of src, by the same rows of one matrix: dst has a matrix for each group.
void expect_right_sums(const Case& c, bool transpose_a) {
  GraphBuilder g;
  const uint64_t src = g.input(c.dtype, transpose_a ? Dims{c.k, c.m} : Dims{c.m, c.k}, c.src_strides);
  const uint64_t weights = g.input(c.dtype, c.transpose_b ? Dims{c.n, c.k} : Dims{c.k, c.n}, c.weights_strides);
  const uint64_t offsets = g.input(c.offsets, {static_cast<int64_t>(c.ends.size())});
  g.op(OpKind::GroupedMatMul, {src, weights, offsets}, {{"transpose_a", transpose_a}, {"transpose_b", c.transpose_b}}, c.dst);
  expect_library_matches_reference(g.finish(), c.allowed, {{offsets, indices_of(g.tensor(offsets), c.ends)}});
}

TEST(GroupedSums, OfEveryTypeAndLayout) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const DataType dtype : {f32, bf16, f16, f64}) {
        SCOPED_TRACE(name_of(dtype));
        expect_right_sums({.m = 33, .k = 100, .transpose_b = transpose_b, .dtype = dtype, .dst = dtype}, transpose_a);
        if (dtype == bf16) expect_right_sums({.m = 7, .k = 100, .transpose_b = transpose_b, .dtype = bf16}, transpose_a);
      }
  expect_right_sums({.m = 33, .k = 100, .src_strides = {1, 40}, .weights_strides = {2, 210}, .allowed = 4e-6}, false);
}

TEST(GroupedSums, OfLongAndEmptyGroups) {
  expect_right_sums({.m = 5, .k = 3000, .n = 20, .ends = {0, 1, 2600, 2599, 3000}, .allowed = 1e-5}, true);
  expect_right_sums({.m = 5, .k = 9, .n = 1, .ends = {4}}, true);
}

TEST(GroupedSums, NamesAGroupThatEndsOutside) {
  EXPECT_EQ(index_error_of([] { expect_right_sums({.m = 3, .k = 10, .ends = {4, 11}}, false); }),
            "GroupedMatMul \"op0\": input offsets holds 11 at position [1], allowed is 0..10");
}

TEST(GroupedProduct, OfATransposedSrc) {
  GraphBuilder g;
  const uint64_t src = g.input(f32, {33, 100}), weights = g.input(f32, {2, 33, 50}), offsets = g.input(s32, {2});
  g.op(OpKind::GroupedMatMul, {src, weights, offsets}, {{"transpose_a", true}}, f32);
  expect_library_matches_reference(g.finish(), 2e-6, {{offsets, indices_of(g.tensor(offsets), {30, 90})}});
}

TEST(GroupedProduct, OfAnyNumberOfRows) {
  for (const int64_t m : {1, 2, 3, 17, 64, 65, 200}) {
    SCOPED_TRACE(m);
    expect_right_groups({.m = m, .ends = {0, m / 3, m}});
    expect_right_groups({.m = m, .ends = {m / 2}});
  }
}

// Parts of one size, of the next larger and of the next smaller one, before other groups and at the end of the rows.
TEST(GroupedProduct, OfManyRows) {
  for (const DataType dtype : {f32, bf16})
    expect_right_groups({.m = 1800, .ends = {130, 250, 250, 850, 1670, 1790}, .dtype = dtype, .dst = dtype});
}

TEST(GroupedProduct, OfFewColumnsAndLongSums) {
  expect_right_groups({.m = 9, .k = 5000, .n = 1, .ends = {4, 9}, .allowed = 1e-5});
  expect_right_groups({.m = 9, .k = 1, .n = 300, .ends = {4, 9}, .transpose_b = true, .dtype = bf16, .dst = bf16});
}

// Bits that do not depend on the rows beside it: row 30 of a group of 73 rows is that of a MatMul of one row.
TEST(GroupedProduct, ARowHasTheBitsOfAProductOfItsOwn) {
  const LibraryRun run = expect_right_groups({});
  GraphBuilder g;
  const uint64_t row = g.input(f32, {1, 33}), matrix = g.input(f32, {33, 50});
  g.op(OpKind::MatMul, {row, matrix}, {}, f32);
  const auto part = [](const Buffer& from, int64_t first, int64_t count) {
    Buffer made(static_cast<size_t>(count) * sizeof(float) + 64, std::byte{0});
    std::memcpy(made.data(), from.data() + first * int64_t{sizeof(float)}, static_cast<size_t>(count) * sizeof(float));
    return made;
  };
  const std::map<uint64_t, Buffer> given{{row, part(run.buffers.at(run.inputs[0].id), 30 * 33, 33)},
                                         {matrix, part(run.buffers.at(run.inputs[1].id), 2 * 33 * 50, 33 * 50)}};
  const LibraryRun alone = expect_library_matches_reference(g.finish(), 2e-6, given);
  EXPECT_TRUE(part(run.buffers.at(run.outputs[0].id), 30 * 50, 50) == part(alone.buffers.at(alone.outputs[0].id), 0, 50));
}

// The group of entries 20 to 92 sums what a MatMul of these entries does, in the same order.
TEST(GroupedSums, AGroupHasTheBitsOfAProductOfItsOwn) {
  for (const DataType dtype : {f32, bf16}) {
    GraphBuilder g, h;
    const int64_t of_element = bytes_of(dtype, 1), of_group = 33 * 50 * int64_t{sizeof(float)};
    const uint64_t src = g.input(dtype, {100, 33}), weights = g.input(dtype, {100, 50}), offsets = g.input(s32, {3});
    g.op(OpKind::GroupedMatMul, {src, weights, offsets}, {{"transpose_a", true}}, f32);
    const LibraryRun run =
        expect_library_matches_reference(g.finish(), 2e-6, {{offsets, indices_of(g.tensor(offsets), {20, 93, 100})}});
    const auto part = [](const Buffer& from, int64_t first, int64_t bytes) {
      Buffer made(static_cast<size_t>(bytes) + 64, std::byte{0});
      std::memcpy(made.data(), from.data() + first, static_cast<size_t>(bytes));
      return made;
    };
    const uint64_t rows = h.input(dtype, {73, 33}), matrix = h.input(dtype, {73, 50});
    h.op(OpKind::MatMul, {rows, matrix}, {{"transpose_a", true}}, f32);
    const std::map<uint64_t, Buffer> given{
        {rows, part(run.buffers.at(run.inputs[0].id), 20 * 33 * of_element, 73 * 33 * of_element)},
        {matrix, part(run.buffers.at(run.inputs[1].id), 20 * 50 * of_element, 73 * 50 * of_element)}};
    const LibraryRun alone = expect_library_matches_reference(h.finish(), 2e-6, given);
    EXPECT_TRUE(part(run.buffers.at(run.outputs[0].id), of_group, of_group) ==
                part(alone.buffers.at(alone.outputs[0].id), 0, of_group));
  }
}

TEST(GroupedProduct, NamesAGroupThatEndsOutside) {
  EXPECT_EQ(index_error_of([] { expect_right_groups({.m = 10, .ends = {4, 11}}); }),
            "GroupedMatMul \"op0\": input offsets holds 11 at position [1], allowed is 0..10");
}

}  // namespace
}  // namespace lamina::testing
