// The loops of pools and resampling, over cells of many lanes: channels that lie next to each other and do not see each other.
// The same bits with any vectors: each lane is computed as if it were alone, in an order that its reads give.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/library/cells/axis_reads.h"

namespace lamina::cpu {

inline constexpr int64_t kLeastLanes = 16, kLeastLanesOfBf16 = 32;

// What a row of the output reads along the other axes: a line of cells each.
struct Line {
  int64_t at = 0;  // of its first cell, in elements of the input
  float weight = 1;
  int32_t tap = 0;
  int64_t winners_at = 0;
};

// One row of cells of the output, along the last axis, and what it is made of. Numbers of lanes and strides are in elements.
struct CellRow {
  std::span<const Line> lines{};
  const AxisReads* reads = nullptr;  // along the last axis, of cells
  Range cells{};
  float divisor = 1;  // of the other axes
  const void* input = nullptr;
  int64_t input_stride = 0;
  const int32_t* winners = nullptr;  // of the cells of `input`, in the order in which first_maximum wrote them
  int64_t winners_stride = 0;
  void* output = nullptr;  // the first of `cells`
  int64_t output_stride = 0;
  int64_t lanes = 0;
};

// Of f32 or of bf16, which is computed in f32 and rounded once.
struct LaneKernels {
  using Kernel = void (*)(const CellRow& row);
  Kernel sum;              // of the input, divided
  Kernel weighted_sum;     // of weight * input, divided
  Kernel long_sum;         // the same for many terms
  Kernel maximum;          // NaN wins; -inf of nothing
  Kernel first_maximum;    // the tap of the first maximum, of the first NaN where there is one, as s32; -1 of nothing
  Kernel sum_of_won;       // of the input of those windows whose maximum this cell is
  Kernel long_sum_of_won;  // the same for many windows
};

struct LaneCode {
  const char* vectors;  // "avx512"
  LaneKernels f32, bf16;
};

// For every instruction set that this machine has, the best last.
std::span<const LaneCode> lane_code();

}  // namespace lamina::cpu
