// What the runtime and generated code agree on: where partial column sums lie, and how a split kernel is called.
#pragma once

#include <cstdint>

#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// Elements from one column sum's partial sums to the next one's: each begins a line.
inline int64_t column_pitch(int64_t row_size) { return (row_size + 63) / 64 * 64; }

// The last argument of a kernel function under the split schedule; see emit_kernel.h for the steps.
struct SplitCall {
  int64_t step;
  int64_t block_begin;  // first row of the block of rows: it starts the column sums, the others add to them
  int64_t rows_ahead;   // from here to the rows that come next
  void* column_sums;    // of the block of rows
  void* row_states;     // split_state_bytes() bytes for each row
};
int64_t split_state_bytes(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
