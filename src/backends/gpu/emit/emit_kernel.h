// Kernel IR to GPU source in one C dialect. After a prelude made of a language's words it is valid CUDA C++, HIP and OpenCL C
// 1.2.
//
// A kernel becomes `LM_KERNEL(group size, resident groups) NAME(b0, o0, b1, o1, ..., words)`. Its parameters are a buffer and
// a byte offset per arg; with column sums, a buffer and an offset for partial sums; then 64-bit words: the number of rows,
// the size of a row (only flat kernels read it), the outer extents, and per arg the outer strides in elements that are not 0
// in the kernel's structure. A kernel with column sums is followed by NAME_columns, which adds the partial sums. A split
// kernel consists of NAME_0, NAME_1, ..., one for each phase with a walk. They have two more words: the number of bytes of
// partial sums before the rows' states, and the number of elements of a row per team. A kernel that copies rows ahead without
// column sums has one more word: the number of rows of a team.
//
// Naming in the text:
//   pA        arg A at the row's first element            nI      node I: a value per row, or of the current element
//   rI, wI    raw elements loaded for, stored by node I   keptI   a node's values along the row, live between phases
//   aI_J      accumulator J of reduction I, or of each    cI      column sums of a thread's elements
//             lane of a thread with several: lanes_aI_J
//   heldI     the operand of moments I, along a block     partI   mean of the current block; spreadI: squared deviations
//   fA        for an arg whose elements share bytes: the start of the row as an offset from pA, which is then the arg's start
//   aheadI    what all threads read of the next row for load I, takenI of this row; copied, side: memory of copied rows
//   row, at   the row, and the start of the current chunk in it; t is the thread's index in its team
//
// From the program to the expression; each part uses those below it:
//   emit_kernel -> row_loops, split_rows     the functions of a program
//   row_loops                                the phases of a row: row values, a walk block by block, the results of its roots
//   chunk                                    at a thread's chunk of a block: loads, the nodes' values, their uses
//   rows                                     parameters, threads, the pointers of a row
//   column_sums, reductions                  partial sums
//   values, c_types                          a value per node; types, constants and conversions
//   emission                                 the kernel, its schedule and loop plan, the text
//   program_text (prelude.inl, teams.inl)    the text before the kernel
// kernels/loop_plan decides what a walk computes, schedule/ what stays live.
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/languages/language.h"
#include "backends/gpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::gpu {

struct KernelSource {
  std::string symbol;                // of the kernel
  std::vector<std::string> symbols;  // of the functions in launch order: the kernel or its phases, then its column sums
  std::string text;                  // the whole program
  std::string body;                  // the kernels without prelude and dialect
  std::vector<int> local_bytes;      // local memory of a work-group that a launch of each function allocates; absent: none
};

// Bytes that a row of a split kernel stores between launches.
int64_t split_state_bytes(const kernel::Kernel& kernel);

// `aligned`: every tensor that is dense along the row starts each row at a multiple of 16 bytes. `disjoint`: no output shares
// memory with an input. Both are assumptions that allow faster code with the same bits.
KernelSource emit_kernel(const kernel::Kernel& kernel, const Schedule& schedule, const Language& language, bool aligned,
                         bool disjoint);

bool needs_f64(const kernel::Kernel& kernel);  // some value of the program is a double

}  // namespace lamina::gpu
