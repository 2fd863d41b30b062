// Elementary functions as LLVM IR, for scalars and fixed vectors of float or double.
//
// Every function here emits code without calls into libm and returns a value of the type of `x`; at most one branch in it, to
// what few vectors need. The code is the same arithmetic on every instruction set: fused multiply-adds are written as llvm.fma,
// division and square root are exact, and the builder's fast-math flags must be empty. So are the results the same bits on
// every target; Instructions only choose between two ways to the same bits. NaN goes in and comes out as a
// quiet NaN; infinities, signed zeros and subnormals are handled, nothing is flushed to zero.
//
// Errors against the true value, in ULP of the result, measured over every float and over a dense sample of doubles, stand in
// tests/backends/cpu/vector/math_test.cpp.
#pragma once

#include "backends/cpu/code/llvm_headers.h"
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

llvm::Value* emit_exp(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
// The same bits for an x that is known to be at most 0, or NaN.
llvm::Value* emit_exp_of_at_most_zero(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
llvm::Value* emit_expm1(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
llvm::Value* emit_log(llvm::IRBuilder<>& b, llvm::Value* x);
llvm::Value* emit_log1p(llvm::IRBuilder<>& b, llvm::Value* x);
llvm::Value* emit_tanh(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
// 1 / (1 + exp(-x))
llvm::Value* emit_sigmoid(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
llvm::Value* emit_erf(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
// Of any argument, however large: its place on the circle is found exactly enough.
llvm::Value* emit_sin(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
llvm::Value* emit_cos(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
// Cumulative distribution of the standard normal, erfc(-x / sqrt(2)) / 2; gelu(x) = x * normal_cdf(x). In double the relative
// error is a few ULP everywhere. In float the error is at most 2.3 ULP of 1/2, and relative to the result 2^-16 down to
// x = -4, 2^-10 down to x = -5.5, a few ULP left of it.
llvm::Value* emit_normal_cdf(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});
// x^beta for a real constant, as C's pow: beta 0 gives 1 for every x (NaN too); a negative x needs an integer beta, else NaN.
llvm::Value* emit_pow_const(llvm::IRBuilder<>& b, llvm::Value* x, double beta, const Instructions& target = {});
// To the nearest integer, halves to the even one. Keeps the sign of zero.
llvm::Value* emit_round_half_even(llvm::IRBuilder<>& b, llvm::Value* x, const Instructions& target = {});

}  // namespace lamina::cpu
