// Pairs of successive entries of k in words of 32 bits. Of u8 and s8, whose products are summed exactly: two integers of 16
// bits, from which their zero points are subtracted. Of bf16: as they are.
#pragma once

#include <cstdint>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/product/product_function.h"
#include "interface/data_type.h"

namespace lamina::cpu {

// As integers of 16 bits. `integers`: a scalar or a vector of u8 or s8.
llvm::Value* without_zero_point(ProductFunction& f, DataType dtype, int32_t zero_point, llvm::Value* integers);

// Pairs of u8 or s8, as integers of 16 bits: as many as `type` has lanes, which follow each other; or one from each of two
// rows.
llvm::Value* load_pairs(ProductFunction& f, llvm::Type* type, llvm::Value* pointer);
llvm::Value* pairs_of_rows(ProductFunction& f, llvm::Value* first, llvm::Value* second);

llvm::Value* words_of_pairs(ProductFunction& f, DataType dtype, int32_t zero_point, llvm::Value* pairs);

// Of words: sum + the two products.
llvm::Value* add_products_of_pairs(ProductFunction& f, llvm::Value* sum, llvm::Value* first, llvm::Value* second);

// Of words of four bytes: sum + the products of the unsigned ones in `codes` and the signed ones in `bytes`. `are_small`: all
// codes are less than 128.
llvm::Value* add_products_of_bytes(ProductFunction& f, llvm::Value* sum, llvm::Value* codes, llvm::Value* bytes,
                                   bool are_small);

// Likewise, for words of two sums of 16 bits, which do not overflow; null if the target has no better code for that. Then each
// sum is added to that of its word.
llvm::Value* add_pairs_of_bytes(ProductFunction& f, llvm::Value* sums, llvm::Value* codes, llvm::Value* bytes);
llvm::Value* add_pair(ProductFunction& f, llvm::Value* sum, llvm::Value* pair);

// Words of bf16 from two rows, as f32: as many vectors.
ProductFunction::Values words_of_rows(ProductFunction& f, int vectors, llvm::Value* first, llvm::Value* second);

// Likewise, for words of bf16 as f32.
llvm::Value* add_products_of_bf16_pairs(ProductFunction& f, llvm::Value* sum, llvm::Value* first, llvm::Value* second);

}  // namespace lamina::cpu
