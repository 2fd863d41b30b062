// The random numbers of Dropout as LLVM IR: Philox4x32-10, the words and the decision of backends/reference/philox.h bit for
// bit, which also says how element, seed and offset make counter and key.
#pragma once

#include "backends/cpu/llvm_headers.h"

namespace lamina::cpu {

// The 32-bit word that each element draws. `index`: i64, scalar or vector, row-major element positions in any order; `seed`
// and `offset`: i64 scalars. The result is i32 of the same width.
llvm::Value* emit_philox_word(llvm::IRBuilder<>& b, llvm::Value* index, llvm::Value* seed, llvm::Value* offset);

// The same for `width` neighbours, first, first + 1, ... (a multiple of 4 each, `first` an i64 scalar), at a quarter of the
// work: four neighbours share one call of the generator. The result is <width x i32>.
llvm::Value* emit_philox_words_from(llvm::IRBuilder<>& b, llvm::Value* first, int width, llvm::Value* seed,
                                    llvm::Value* offset);

// i1 per lane: the element that drew `word` is kept at drop probability `probability` (a float scalar, clamped to 0..1; NaN
// keeps nothing).
llvm::Value* emit_dropout_keeps(llvm::IRBuilder<>& b, llvm::Value* word, llvm::Value* probability);

}  // namespace lamina::cpu
