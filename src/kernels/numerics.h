// The order in which sums are taken. It decides the bits of every result (docs/numerics.md), so it is stated here alone, for
// the interpreter of the kernel IR and for the CPU; to change a number here is to change results.
//
// Within a row. The row is cut into blocks of kBlock elements. Element i of a block is added to virtual lane i mod
// kVirtualLanes, in the order of i and in the type that is computed in. At the block's end the lanes are folded: lane l takes
// lane l + 32, then what is left takes l + 16, l + 8, ... l + 1; a product, maximum or minimum goes the same way. Blocks join
// the row's total in f64, one after the other. Mean and variance count their differences from the average of the row's first
// kShiftElements elements.
//
// Across rows. A column sum is taken over blocks of kColumnBlockRows rows, row after row within a block. Blocks join in f64 as
// a binary tree: two neighbours as soon as both are complete, then two such pairs, and so on; what has no neighbour when the
// last block is done joins the one on its left, from the right.
#pragma once

#include <cstdint>

namespace lamina::numerics {

inline constexpr int kVirtualLanes = 64;
inline constexpr int kBlock = 4096;
inline constexpr int kShiftElements = 16;
inline constexpr int64_t kColumnBlockRows = 64;

}  // namespace lamina::numerics
