// Kernel IR to LLVM IR.
//
// A kernel becomes one function `void NAME(const int64_t* call, int64_t row_begin, int64_t row_end, int64_t inner_begin,
// int64_t inner_end, void* partials)` that runs rows [row_begin, row_end); only a kernel without reductions looks at the inner
// range. `call` holds, as 64-bit words: a pointer per arg, the outer extents, then per arg its outer strides in bytes.
//
// Sums are taken in the order of kernels/numerics.h. The vector width is the machine's and changes no bit of a result.
//
// Under the split schedule the function does one step of its rows; `partials` points to a SplitCall. Step 2p walks the blocks
// of inner range [inner_begin, inner_end) of each row in phase p (a range starts at a multiple of kBlock and ends at one or at
// the row's end), step 2p + 1 combines what they came to, once per row, when all of them are done.
//
// Terms:
//   row, segment    a point of the outer dims; of several inner dims, a run of the innermost
//   lane, vector    an element of a row, of which as many as the machine has go together; across rows a lane is a row
//   chunk, block    the 64 virtual lanes of a sum, and the elements after which they are folded (kernels/numerics.h)
//   tile, strip     rows that go through a phase before any goes through the next; columns that all of them go through first
//   group, batch    rows with a lane each: all the way (across rows), or where short rows have their values per row computed
//   frame           how a value per row lies: one of a row, or a lane for each row of a group or batch
//   phase, root     a walk over the row, and what it is for: a reduction, a store of elements, a column sum
//   walk, run       a way over a row, and over some elements of it; at each chunk it comes to they call a body
//   live            of a node: its values along the row, held between phases
//   e_, b_          in every part, the emission and the builder of its IR
//
// From the function down to the instruction; each knows those below it:
//   emit_kernel -> along_rows, across_rows, split_rows   a schedule each: which rows, in tiles (tiles, batch)
//   row_phases                                           a phase of some rows: values per row, a walk, what its roots came to
//   walk_whole, _strip, _segments, _realigned            ways over a row, made of
//   run_chunks, _lines, _across                          ways over some elements
//   body                                                 at a chunk: the nodes' values, then what becomes of them:
//   reductions (moments, accumulators, nan_flags), column_sums, line_streams, memory, with in_register_transpose across rows
//   values, memory (nibbles), rows_in_flight, prefetch   a value per node; loads and stores; where a row lies
//   phases                                               what runs in which walk, and what is live between them: emits nothing
//   emission                                             the function, its arguments, loops, conditions, constants
#pragma once

#include <string>

#include "backends/cpu/code/llvm_headers.h"
#include "backends/cpu/emit/split_call.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

void emit_kernel(llvm::Module& module, const std::string& symbol, const kernel::Kernel& kernel, const Schedule& schedule,
                 const Instructions& target);

}  // namespace lamina::cpu
