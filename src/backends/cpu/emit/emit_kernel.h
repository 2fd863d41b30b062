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
#pragma once

#include <string>

#include "backends/cpu/code/llvm_headers.h"
#include "backends/cpu/emit/split_call.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

void emit_kernel(llvm::Module& module, const std::string& symbol, const kernel::Kernel& kernel, const Schedule& schedule,
                 const TargetFeatures& target);

}  // namespace lamina::cpu
