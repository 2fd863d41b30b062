// Kernel IR to LLVM IR.
//
// A kernel becomes one function `void NAME(const int64_t* call, int64_t row_begin, int64_t row_end, int64_t inner_begin,
// int64_t inner_end, void* partials, void* live)` that runs rows [row_begin, row_end). Only kernels without reductions read the
// inner range. `call` contains 64-bit words: a pointer per arg, the outer extents, then per arg its outer strides in bytes.
// `live` is the thread's memory of live values, unless they are on its stack (schedule/live_values.h).
//
// kernels/numerics.h defines the order of sums. The vector width is the machine's and changes no bit of a result.
//
// Under the split schedule the function does one step for its rows, and `partials` points to a SplitCall. Step 2p walks the
// blocks in inner range [inner_begin, inner_end) of each row in phase p (a range starts at a multiple of kBlock, and ends at
// one or at the row's end). Step 2p + 1 combines the blocks' results once per row, after all of them are complete.
//
// Terms of this module:
//   row, segment    a point of the outer dims; with several inner dims, a run of the innermost one
//   lane, vector    an element of a row, and as many as the machine computes together; across rows a lane is a row
//   chunk, block    the 64 virtual lanes of a sum, and the elements after which they are folded (kernels/numerics.h)
//   tile, strip     rows that complete a phase before any starts the next; columns that all of them complete first
//   group, batch    rows with one lane each: for all their work (across rows), or only for the row values of short rows
//   frame           the form of a row value: one value of a row, or one lane per row of a group or batch
//   phase, root     a walk over the row, and its results: a reduction, a store of elements, a column sum
//   walk, run       an iteration over a row, and over some elements of it; both call a body for each chunk
//   live            a node whose values along the row are stored in the thread's memory between phases
//   e_, b_          in every part, the emission and the builder of its IR
//
// From the function to the instruction; each layer uses those below it:
//   emit_kernel -> along_rows, across_rows, split_rows   one per schedule: which rows, in tiles (tiles, batch)
//   row_phases                                           a phase of some rows: row values, a walk, the results of its roots
//   walk (_strip, _segments, _realigned)                 iterates over a row, using
//   run_chunks, _lines, _across                          which iterate over some elements
//   body (register_pressure)                             at a chunk: the nodes' values, then their uses:
//   reductions (moments, accumulators, nan_flags), column_sums, line_streams, memory; in_register_transpose across rows
//   values, memory (nibbles), rows_in_flight, prefetch   a value per node; loads and stores; the memory of a row
//   kernels/loop_plan, schedule/loop_policy              what runs in which walk, and what stays live: emit nothing
//   emission                                             the function, its arguments, loops, conditions, constants
#pragma once

#include <string>

#include "backends/cpu/emit/split_call.h"
#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

void emit_kernel(llvm::Module& module, const std::string& symbol, const kernel::Kernel& kernel, const Schedule& schedule,
                 const Instructions& target);

}  // namespace lamina::cpu
