// Pairs of integers: how products of u8 and s8 are summed exactly. Two successive entries of k are two integers of 16 bits in a
// word of 32 bits, from which their zero points are subtracted.
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

}  // namespace lamina::cpu
