// The order of summation. It decides the bits of every result (docs/numerics.md), and this file is its only definition, for
// the interpreter of the kernel IR and for the CPU. Changing a number here changes results.
//
// Within a row: the row is cut into blocks of kBlock elements. Element i of a block is added to virtual lane i mod
// kVirtualLanes, in the order of i and in the compute type. At the block's end the lanes are folded: lane l + 32 is added to
// lane l, then l + 16, l + 8, ... l + 1. A product, maximum or minimum uses the same order. The blocks are added to the row's
// total in f64, one after the other. Mean and variance sum differences from the average of the row's first kShiftElements
// elements.
//
// Across rows: a column sum uses blocks of kColumnBlockRows rows, row after row within a block. Blocks are joined in f64 as a
// binary tree: two neighbours as soon as both are complete, then two such pairs, and so on. Blocks without a neighbour after
// the last block join the one on their left, starting from the right.
#pragma once

#include <cstdint>

namespace lamina::numerics {

inline constexpr int kVirtualLanes = 64;
inline constexpr int kBlock = 4096;
inline constexpr int kShiftElements = 16;
inline constexpr int64_t kColumnBlockRows = 64;

}  // namespace lamina::numerics
