// The interface between the runtime and generated code: the layout of partial column sums, and the call of a split kernel.
#pragma once

#include <cstdint>

#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// The distance in elements between the partial sums of two column sums. Each starts at a cache line.
inline int64_t column_pitch(int64_t row_size) { return (row_size + 63) / 64 * 64; }

// The last argument of a kernel function under the split schedule; see emit_kernel.h for the steps.
struct SplitCall {
  int64_t step;
  int64_t block_begin;  // the first row of the block of rows: it starts the column sums, the others add to them
  int64_t rows_ahead;   // the distance to the rows that come next
  void* column_sums;    // of the block of rows
  void* row_states;     // split_state_bytes() bytes per row
};
int64_t split_state_bytes(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
