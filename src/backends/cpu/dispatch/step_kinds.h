// The kinds of steps in a program that is written to a file. A new kind is added at the end; a change of what a kind writes
// changes the version of the format.
#pragma once

#include "backends/cpu/program/bytes.h"

namespace lamina::cpu {

enum class StepKind {
  kernel,
  tiled,
  product,
  convolution,
  dequantized,
  top_k,
  running,
  windows,
  grouped,
  grouped_sums,
  empty_sums,
  nothing,
  lines,
  recurrence,
  taps
};
template <>
inline constexpr int kLastEnumerator<StepKind> = static_cast<int>(StepKind::taps);

}  // namespace lamina::cpu
