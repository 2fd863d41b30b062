// The random numbers of Dropout as LLVM IR: Philox4x32-10, the words of backends/reference/philox.h bit for bit, which also
// says how element, seed and offset make counter and key.
#pragma once

#include "backends/cpu/code/llvm_headers.h"

namespace lamina::cpu {

// The 32-bit word that each element draws, zero-extended: i64 like `index`, a scalar or vector of row-major element positions
// in any order. `seed` and `offset`: i64, scalars or as wide as `index`.
llvm::Value* emit_philox_word(llvm::IRBuilder<>& b, llvm::Value* index, llvm::Value* seed, llvm::Value* offset);

// The same for `width` (a multiple of 4) neighbours, first, first + 1, ...: four of them share one call of the generator.
// `first`, `seed` and `offset` are i64 scalars, the result is <width x i32>.
llvm::Value* emit_philox_words_from(llvm::IRBuilder<>& b, llvm::Value* first, int width, llvm::Value* seed,
                                    llvm::Value* offset);

}  // namespace lamina::cpu
