// Rewrites of a loop nest keep its values: simplify_dims makes it as flat as memory allows, and store_sums_of_one_row replaces
// sums by stores.
#include "kernels/dims.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "interface/status.h"
#include "kernels/builder.h"
#include "kernels/interpret.h"

namespace lamina::kernel {
namespace {

// dst = a + b, elementwise over `extents`.
Kernel add(Dims extents, Dims a, Dims b, Dims dst) {
  Builder k("add", extents, static_cast<int>(extents.size()) - 1);
  const int x = k.add_arg({.name = "a", .strides = std::move(a), .table = {}});
  const int y = k.add_arg({.name = "b", .strides = std::move(b), .table = {}});
  const int z = k.add_arg({.name = "dst", .output = true, .strides = std::move(dst), .table = {}});
  const Value left = k.load(x);
  k.store(left + k.load(y), z);
  Kernel kernel = k.finish();
  simplify_dims(kernel);
  return kernel;
}

TEST(SimplifyDims, DenseTensorsBecomeOneRun) {
  const Kernel kernel = add({2, 3, 4}, {12, 4, 1}, {12, 4, 1}, {12, 4, 1});
  EXPECT_EQ(kernel.extents, Dims({24}));
  EXPECT_EQ(kernel.outer_rank, 0);
}

TEST(SimplifyDims, ABroadcastDimStaysApart) {
  // b [3, 1] over [2, 3, 4]: one value per row
  const Kernel kernel = add({2, 3, 4}, {12, 4, 1}, {0, 1, 0}, {12, 4, 1});
  EXPECT_EQ(kernel.extents, Dims({2, 3, 4}));
  EXPECT_EQ(kernel.outer_rank, 2);
  EXPECT_FALSE(kernel.nodes[1].per_element);
}

TEST(SimplifyDims, ARowGapStopsMerging) {
  const Kernel kernel = add({2, 3, 4}, {100, 4, 1}, {12, 4, 1}, {12, 4, 1});
  EXPECT_EQ(kernel.extents, Dims({2, 12}));
}

// For example, a graph reads the positions of a reduced value: the sum itself has no consumer.
TEST(SimplifyDims, WhatNoOutputVariesAlongIsNotWalked) {
  const Kernel kernel = add({2, 3, 4}, {12, 4, 1}, {0, 1, 0}, {0, 1, 0});
  EXPECT_EQ(kernel.extents, Dims({3}));
  EXPECT_EQ(add({0, 3}, {3, 1}, {0, 1}, {0, 1}).extents, Dims({3}));
}

TEST(SimplifyDims, DimsAreOrderedAsTheOutputLies) {
  const Kernel kernel = add({2, 3}, {1, 2}, {1, 2}, {1, 2});
  EXPECT_EQ(kernel.extents, Dims({6}));
  EXPECT_EQ(kernel.args[0].strides, Dims({1}));
}

TEST(SimplifyDims, OneElementHasOneDim) {
  const Kernel kernel = add({1, 1}, {1, 1}, {1, 1}, {1, 1});
  EXPECT_EQ(kernel.extents, Dims({1}));
  EXPECT_EQ(kernel.outer_rank, 0);
}

TEST(SimplifyDims, OuterAndInnerDimsOfAReductionNeverMerge) {
  Builder k("sum", {2, 3, 4}, 1);
  const int x = k.add_arg({.name = "x", .strides = {12, 4, 1}, .table = {}});
  const int y = k.add_arg({.name = "y", .output = true, .strides = {1, 0, 0}, .table = {}});
  k.store(k.reduce(Reduction::sum, k.load(x)), y);
  Kernel kernel = k.finish();
  simplify_dims(kernel);
  EXPECT_EQ(kernel.extents, Dims({2, 12}));
  EXPECT_EQ(kernel.outer_rank, 1);
}

// sums[r, i] = the sum of x[r, i, :, :], where x has `strides`.
Kernel segment_sums(const Dims& extents, const Dims& strides) {
  Builder k("sums", extents, 1);
  const int x = k.add_arg({.name = "x", .strides = strides, .table = {}});
  const int sums = k.add_arg({.name = "sums", .output = true, .strides = {extents[1], 1, 0, 0}, .table = {}});
  k.segment_sum(k.load(x), sums);
  Kernel kernel = k.finish();
  simplify_dims(kernel);
  return kernel;
}

TEST(SimplifyDims, DimsOfASegmentMergeWithEachOtherAlone) {
  const Kernel kernel = segment_sums({2, 3, 4, 5}, {60, 20, 5, 1});
  EXPECT_EQ(kernel.extents, Dims({2, 3, 20}));
  EXPECT_EQ(kernel.outer_rank, 1);
}

TEST(SimplifyDims, DimsThatNumberSegmentsStayFirst) {
  const Kernel kernel = segment_sums({2, 3, 4, 5}, {60, 5, 15, 1});  // a line of each of the three segments in turn
  EXPECT_EQ(kernel.extents, Dims({2, 3, 4, 5}));
  EXPECT_EQ(kernel.args[0].strides, Dims({60, 5, 15, 1}));
  verify(kernel);
}

TEST(SegmentSums, AreOnePerSegment) {
  std::vector<float> x(120), sums(6, -1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::vector<InterpretedArg> args = {{x.data(), 120}, {sums.data(), 6}};
  interpret(segment_sums({2, 3, 4, 5}, {60, 20, 5, 1}), args);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(sums[i], static_cast<float>(20 * (20 * i) + 190));
}

TEST(SegmentSums, VaryAlongTheFirstInnerDimsAlone) {
  for (const Dims& strides : {Dims{0, 0, 0}, Dims{0, 0, 1}, Dims{0, 4, 1}}) {
    Builder k("sums", {2, 3, 4}, 1);
    const int x = k.add_arg({.name = "x", .strides = {12, 4, 1}, .table = {}});
    const int sums = k.add_arg({.name = "sums", .output = true, .strides = strides, .table = {}});
    k.segment_sum(k.load(x), sums);
    EXPECT_THROW(k.finish(), Error) << describe(strides);
  }
}

// sums = the column sums of x + x
Kernel column_sums(int64_t rows, int64_t columns) {
  Builder k("sums", {rows, columns}, 1);
  const int x = k.add_arg({.name = "x", .strides = {columns, 1}, .table = {}});
  const int sums = k.add_arg({.name = "sums", .output = true, .strides = {0, 1}, .table = {}});
  const Value value = k.load(x);
  k.column_sum(value + value, sums);
  return k.finish();
}

TEST(StoreSumsOfOneRow, KeepsTheirBits) {
  std::vector<float> x = {1.5F, -0.0F, 0.0F, INFINITY, -3e38F}, sums(5), stored(5);
  Kernel kernel = column_sums(1, 5);
  const std::vector<InterpretedArg> to_sums = {{x.data(), 5}, {sums.data(), 5}},
                                    to_stored = {{x.data(), 5}, {stored.data(), 5}};
  interpret(kernel, to_sums);
  store_sums_of_one_row(kernel);
  EXPECT_FALSE(kernel.has_column_sum());
  EXPECT_FALSE(kernel.args[1].column);
  verify(kernel);
  interpret(kernel, to_stored);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(stored[i], sums[i]) << i;
    EXPECT_EQ(std::signbit(stored[i]), std::signbit(sums[i])) << i;
  }
  EXPECT_FALSE(std::signbit(stored[1])) << "a sum that begins with 0 is never -0";
}

TEST(StoreSumsOfOneRow, LeavesSeveralRowsAlone) {
  Kernel kernel = column_sums(2, 5);
  store_sums_of_one_row(kernel);
  EXPECT_TRUE(kernel.has_column_sum());
}

}  // namespace
}  // namespace lamina::kernel
