// simplify_dims keeps values and makes the loop nest as flat as memory allows.
#include "kernels/dims.h"

#include <gtest/gtest.h>

#include "kernels/builder.h"

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
  // b [3, 1] over [2, 3, 4]: its value is one per row
  const Kernel kernel = add({2, 3, 4}, {12, 4, 1}, {0, 1, 0}, {12, 4, 1});
  EXPECT_EQ(kernel.extents, Dims({2, 3, 4}));
  EXPECT_EQ(kernel.outer_rank, 2);
  EXPECT_FALSE(kernel.nodes[1].per_element);
}

TEST(SimplifyDims, ARowGapStopsMerging) {
  const Kernel kernel = add({2, 3, 4}, {100, 4, 1}, {12, 4, 1}, {12, 4, 1});
  EXPECT_EQ(kernel.extents, Dims({2, 12}));
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

}  // namespace
}  // namespace lamina::kernel
