// Kernel IR to GPU source: one C dialect, read by CUDA C++ and by OpenCL C 1.2 behind a small prelude each.
//
// A kernel becomes `LM_KERNEL(group size, groups to hold at once) NAME(b0, o0, b1, o1, ..., words)`: per arg a buffer and a
// byte offset into it; with column sums a buffer and an offset for partial sums; then 64-bit words: the number of rows, the
// size of a row (flat kernels alone look at it), the outer extents, and per arg the outer strides in elements that are not 0 in
// the kernel's structure. A kernel with column sums is followed by NAME_columns, which adds up the partial sums. Of a split
// kernel there are NAME_0, NAME_1,
// ..., one for each phase that walks; they take two words more: how many bytes of partial sums lie before the rows' states, and
// how many elements of a row a team takes.
//
// Naming in the text:
//   pA        arg A at the row's first element            nI      node I: a value per row, or of the element at hand
//   rI, wI    raw elements loaded for, stored by node I   keptI   a node's values along the row, held between phases
//   aI_J      accumulator J of reduction I                cI      column sums of a thread's elements
//   heldI     what moments I averages, along a block      partI   the mean of the block at hand; spreadI its squared deviations
//   fA        of an arg whose elements share bytes: where the row starts, counted from pA, which is the arg's start then
//   row, at   the row, and where in it the chunk at hand starts; t the thread's place in its team
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::gpu {

enum class Language { cuda, opencl };

struct KernelSource {
  std::string symbol;  // of the kernel
  std::vector<std::string>
      symbols;       // of the functions in the order of their launches: the kernel, or its phases; its column sums
  std::string text;  // the whole program
  std::string body;  // the kernels alone, without prelude and dialect
};

// Bytes that a row of a split kernel keeps between launches.
int64_t split_state_bytes(const kernel::Kernel& kernel, const Schedule& schedule);

// Threads of NAME_columns: 32 columns side by side, `columns_depth` threads share the blocks of rows of each.
int columns_depth(const DeviceLimits& limits);

// `aligned`: every tensor that is dense along the row starts each row at a multiple of 16 bytes. `disjoint`: no output shares
// memory with an input. Both are promises that make the code faster; neither changes a bit of a result.
KernelSource emit_kernel(const kernel::Kernel& kernel, const Schedule& schedule, const DeviceLimits& limits, Language language,
                         bool aligned, bool disjoint);

bool needs_f64(const kernel::Kernel& kernel);  // some value of the program is a double

}  // namespace lamina::gpu
