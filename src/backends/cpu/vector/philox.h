// The random numbers of Dropout as LLVM IR: Philox4x32-10 with the same words as backends/reference/philox.h, which defines
// the counter and key of an element.
#pragma once

#include "backends/cpu/llvm/headers.h"

namespace lamina::cpu {

// The 32-bit word of each element, zero-extended to i64 like `index`, which is a scalar or vector of row-major element
// positions in any order. `seed` and `offset` are i64, scalars or as wide as `index`.
llvm::Value* emit_philox_word(llvm::IRBuilder<>& b, llvm::Value* index, llvm::Value* seed, llvm::Value* offset);

// The same for `width` (a multiple of 4) consecutive elements first, first + 1, ...; four of them share one call of the
// generator. `first`, `seed` and `offset` are i64 scalars, the result is <width x i32>.
llvm::Value* emit_philox_words_from(llvm::IRBuilder<>& b, llvm::Value* first, int width, llvm::Value* seed,
                                    llvm::Value* offset);

}  // namespace lamina::cpu
