// Maps of floats that are a few instructions, for scalars and fixed vectors.
#pragma once

#include <span>

#include "backends/cpu/llvm/headers.h"
#include "kernels/math/map_op.h"

namespace lamina::cpu {

// A NaN operand is returned. If both operands are zeros, the second is returned.
llvm::Value* emit_maximum(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y);
// max(x, 0), and 0 if x is NaN or -0.
llvm::Value* emit_positive_part(llvm::IRBuilder<>& b, llvm::Value* x);
llvm::Value* emit_minimum(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y);

// Whether emit_simple_map knows the op: its operands and its result are of one type.
bool is_simple_map(kernel::MapOp op);
llvm::Value* emit_simple_map(llvm::IRBuilder<>& b, kernel::MapOp op, std::span<llvm::Value* const> operands);

}  // namespace lamina::cpu
