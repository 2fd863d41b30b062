// The order of summation. It decides the bits of every result (docs/numerics.md), and this file is its only definition, for
// the interpreter of the kernel IR and for the CPU. Changing a number here changes results.
//
// Within a row: the row is cut into blocks of kBlock elements. Element i of a block is added to virtual lane i mod
// kVirtualLanes, in the order of i and in the compute type. At the block's end the lanes are folded: lane l + 32 is added to
// lane l, then l + 16, l + 8, ... l + 1. A product, maximum or minimum uses the same order. The blocks are added to the row's
// total in f64, one after the other. Mean and variance sum differences from the average of the row's first kShiftElements
// elements.
//
// A row of several inner dims is a sequence of runs of its innermost dim. The lanes restart with each run: element i of a run
// is added to lane i mod kVirtualLanes. A block is runs_of_block whole runs, or kBlock elements of a longer run; the rest of
// that run is a block too. So no lane adds more than kBlock / kVirtualLanes elements, however short the runs are, and a row of
// a single run is cut as above.
//
// A segment sum (kernel_ir.h) adds in the same lanes and blocks, which are folded at the end of each segment too.
//
// Across rows: a column sum uses blocks of kColumnBlockRows rows, row after row within a block. Blocks are joined in f64 as a
// binary tree: two neighbours as soon as both are complete, then two such pairs, and so on. Blocks without a neighbour after
// the last block join the one on their left, starting from the right.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lamina::numerics {

inline constexpr int kVirtualLanes = 64;
inline constexpr int kBlock = 4096;
inline constexpr int kShiftElements = 16;
inline constexpr int64_t kColumnBlockRows = 64;

// Runs of `run` elements each that make a block; 1 where a run has as many elements as a block or more.
constexpr int64_t runs_of_block(int64_t run) {
  const int64_t elements_of_lane = std::max<int64_t>(1, (run + kVirtualLanes - 1) / kVirtualLanes);
  return std::max<int64_t>(1, kBlock / kVirtualLanes / elements_of_lane);
}

}  // namespace lamina::numerics
