// The random words of Dropout as LLVM IR: Philox4x32-10 with the mapping of backends/reference/philox.h, bit for bit.
#pragma once

#include "backends/cpu/llvm_headers.h"

namespace lamina::cpu {

// `index`, `seed` and `offset` are i64, scalars or vectors of one width; so is the result, the 32-bit word zero-extended.
llvm::Value* emit_philox_word(llvm::IRBuilder<>& b, llvm::Value* index, llvm::Value* seed, llvm::Value* offset);

}  // namespace lamina::cpu
