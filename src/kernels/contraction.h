// A matrix product as a kernel: what it computes, to the bit, independent of tiles, blocks, threads and devices.
//
// An element is one chain of fused multiply-adds in the order of k, starting from 0:
//   sum = fma(src[row, k], weights[k, column], sum)
// in f64 if a factor is f64, else in f32, to which narrower factors are converted exactly. Then the bias is added, and the
// result is rounded once to the type of dst.
#pragma once

#include <string>

#include "kernels/kernel_ir.h"
#include "kernels/matmul_stack.h"

namespace lamina::kernel {

struct Contraction {
  MatmulStack matrices;  // as few batch dims as possible
  bool adds = false;     // the result is added to dst, and there is no bias

  Type sum_type() const;
};

// `step` must be a MatMul of floats.
Contraction contraction_of(const LibraryStep& step);
// Of a step with LibraryStep::dequantized: the product with its dequantised weights, row after row in f32.
Contraction dequantized_contraction_of(const LibraryStep& step);

// The same elements as rows of the transposed dst: both factors change places.
Contraction transposed(Contraction contraction);

// "3 x [14, 768] f32 by [768, 3072] f32, bias f32, to f32". Without strides.
std::string print(const Contraction& contraction);

// Checks types, extents and strides. Throws Error(runtime_error): a fault is a bug in the lowering.
void verify(const Contraction& contraction);

// `bias` may be null if there is none.
void interpret(const Contraction& contraction, const void* src, const void* weights, const void* bias, void* dst);

}  // namespace lamina::kernel
