// Kernel IR to LLVM IR.
//
// A kernel becomes one function `void NAME(const int64_t* call, int64_t row_begin, int64_t row_end, int64_t inner_begin,
// int64_t inner_end, void* partials)` that runs rows [row_begin, row_end); only a kernel without reductions looks at the inner
// range. `call` holds, as 64-bit words: a pointer per arg, the outer extents, then per arg its outer strides in bytes.
//
// Sums inside a row run over 64 virtual lanes: element i of a block of 4096 belongs to lane i mod 64, whatever the vector
// width; lanes are combined in a fixed tree, blocks in f64. The vector width is the machine's and changes no bit of a result.
#pragma once

#include <string>

#include "backends/cpu/llvm_headers.h"
#include "backends/cpu/schedule.h"
#include "backends/cpu/vector_math.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

inline constexpr int kVirtualLanes = 64;
inline constexpr int kBlock = 4096;

void emit_kernel(llvm::Module& module, const std::string& symbol, const kernel::Kernel& kernel, const Schedule& schedule,
                 const TargetFeatures& target);

}  // namespace lamina::cpu
