// The interface between the runtime and generated code of kernels: how a function is called, and the layout of partial column
// sums.
#pragma once

#include <cstdint>

namespace lamina::cpu {

// void NAME(call, row_begin, row_end, inner_begin, inner_end, partials, live); see emit_kernel.h.
using KernelFunction = void (*)(const int64_t*, int64_t, int64_t, int64_t, int64_t, void*, void*);

// The distance in elements between the partial sums of two column sums. Each starts at a cache line.
inline int64_t column_pitch(int64_t row_size) { return (row_size + 63) / 64 * 64; }

// `partials` of a kernel function under the split schedule; see emit_kernel.h for the steps.
struct SplitCall {
  int64_t step;
  int64_t block_begin;  // the first row of the block of rows: it starts the column sums, the others add to them
  int64_t rows_ahead;   // the distance to the rows that come next
  void* column_sums;    // of the block of rows
  void* row_states;     // split_state_bytes() bytes per row
};

}  // namespace lamina::cpu
