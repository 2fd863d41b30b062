// Elementary functions as LLVM IR, for scalars and fixed vectors of float or double.
//
// Every function emits code without calls into libm, and returns a value of the type of `x`. The code has at most one branch,
// for values that few vectors contain. The arithmetic is the same on every instruction set: fused multiply-adds are llvm.fma,
// division and square root are exact, and the builder's fast-math flags must be empty. So the results have the same bits on
// every target; Instructions only select between code with equal bits. A NaN argument returns a quiet NaN. Infinities, signed
// zeros and subnormals are supported, and nothing is flushed to zero.
//
// The errors in ULP of the result, measured over every float and over a dense sample of doubles, are in
// tests/backends/cpu/vector/math_test.cpp.
#pragma once

#include "backends/cpu/code/llvm_headers.h"
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

llvm::Value* emit_exp(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
// The same bits for an x that is at most 0, or NaN.
llvm::Value* emit_exp_of_at_most_zero(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
llvm::Value* emit_expm1(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
llvm::Value* emit_log(llvm::IRBuilder<>& b, llvm::Value* x);
llvm::Value* emit_log1p(llvm::IRBuilder<>& b, llvm::Value* x);
llvm::Value* emit_tanh(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
// 1 / (1 + exp(-x))
llvm::Value* emit_sigmoid(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
llvm::Value* emit_erf(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
// For any argument: the angle of a large argument is reduced exactly enough.
llvm::Value* emit_sin(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
llvm::Value* emit_cos(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
// The cumulative distribution of the standard normal, erfc(-x / sqrt(2)) / 2; gelu(x) = x * normal_cdf(x). In double the
// relative error is a few ULP everywhere. In float the error is at most 2.3 ULP of 1/2. Relative to the result it is 2^-16
// down to x = -4, 2^-10 down to x = -5.5, and a few ULP for smaller x.
llvm::Value* emit_normal_cdf(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
// x^beta for a real constant, as C's pow: beta 0 returns 1 for every x, including NaN. A negative x needs an integer beta,
// else the result is NaN.
llvm::Value* emit_pow_const(llvm::IRBuilder<>& b, llvm::Value* x, double beta, const Instructions& target = {});
// Rounds to the nearest integer, ties to even. Keeps the sign of zero.
llvm::Value* emit_round_half_even(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});

}  // namespace lamina::cpu
