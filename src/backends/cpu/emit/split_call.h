// What the runtime and the code of a split kernel agree on.
#pragma once

#include <cstdint>

#include "kernels/kernel_ir.h"

namespace lamina::cpu {

inline constexpr int kBlock = 4096;  // elements of a row whose sums are taken together; part of the numerics

// The last argument of a kernel function under the split schedule; see emit_llvm.h for the steps.
struct SplitCall {
  int64_t step;
  int64_t block_begin;  // first row of the block of rows: it starts the column sums, the others add to them
  int64_t rows_ahead;   // from here to the rows that come next
  void* column_sums;    // of the block of rows
  void* row_states;     // split_state_bytes() bytes for each row
};
int64_t split_state_bytes(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
