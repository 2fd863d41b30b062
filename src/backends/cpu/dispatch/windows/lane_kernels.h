// The loops of pools and resampling, over pixels of many lanes: contiguous channels that are independent of each other. The
// vector width does not change the bits: each lane is computed separately, in the order of its taps.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/program/tap_lists.h"

namespace lamina::cpu {

inline constexpr int64_t kMinLanes = 16, kMinLanesOfBf16 = 32;

// One line of pixels that a row of the output reads along the other axes.
struct Line {
  int64_t at = 0;  // offset of its first pixel, in elements of the input
  float weight = 1;
  int32_t first_tap = 0;  // added to the numbers of the row's taps
  int64_t argmax_at = 0;
};

// One row of pixels of the output, along the last axis, and its taps. Lanes and strides are in elements.
struct PixelRow {
  std::span<const Line> lines{};
  const TapLists* taps = nullptr;  // along the last axis, in pixels
  Range pixels{};
  float divisor = 1;  // of the other axes
  const void* input = nullptr;
  int64_t input_stride = 0;
  const int32_t* argmax = nullptr;  // of the pixels of `input`, in the order in which argmax wrote them
  int64_t argmax_stride = 0;
  void* output = nullptr;  // the first of `pixels`
  int64_t output_stride = 0;
  int64_t lanes = 0;
};

// Kernels for f32 or for bf16, which is computed in f32 and rounded once.
struct LaneKernels {
  using Kernel = void (*)(const PixelRow& row);
  Kernel sum;                 // of the input, divided
  Kernel weighted_sum;        // of weight * input, divided
  Kernel long_sum;            // the same for many terms
  Kernel maximum;             // NaN counts as largest; -inf without taps
  Kernel argmax;              // the tap of the first maximum, or of the first NaN, as s32; -1 without taps
  Kernel sum_of_argmax;       // of the input of those windows whose maximum is this pixel
  Kernel long_sum_of_argmax;  // the same for many windows
};

struct LaneCode {
  const char* vectors;  // "avx512"
  LaneKernels f32, bf16;
};

// One entry per instruction set of this machine, the best last.
std::span<const LaneCode> lane_code();

}  // namespace lamina::cpu
