// Elementary functions as LLVM IR, for scalars and fixed vectors of float or double: the templates of kernels/math over LLVM's
// values.
//
// Every function emits code without calls into libm, and returns a value of the type of its operands. The code has at most one
// branch, for values that few vectors contain. The arithmetic is the same on every instruction set: fused multiply-adds are
// llvm.fma, division and square root are exact, and the builder's fast-math flags must be empty. So the results have the same
// bits on every target; Instructions only select between code with equal bits. A NaN argument returns a quiet NaN.
// Infinities, signed zeros and subnormals are supported, and nothing is flushed to zero.
//
// The errors in ULP of the result, measured over every float and over a dense sample of doubles, are in
// tests/backends/cpu/vector/math_test.cpp.
#pragma once

#include <span>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/targets/target.h"
#include "kernels/math/map_op.h"

namespace lamina::cpu {

// `parameter`: the exponent of a power.
llvm::Value* emit_function(llvm::IRBuilder<>& b, kernel::MapOp op, std::span<llvm::Value* const> operands, double parameter,
                           const Instructions& target = {});
// The bits of exp for an x that is at most 0, or NaN.
llvm::Value* emit_exp_of_at_most_zero(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});

}  // namespace lamina::cpu
