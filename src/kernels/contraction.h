// A matrix product as a kernel: what it computes, to the bit, independent of tiles, blocks, threads and devices.
//
// An element is one chain of fused multiply-adds in the order of k, starting from 0:
//   sum = fma(src[row, k], weights[k, column], sum)
// in f64 if a factor is f64, else in f32, to which narrower factors are converted exactly. Then the bias is added, and the
// result is rounded once to the type of dst.
//
// If factors of bf16 are multiplied in pairs, the chain takes the second entry of each pair of successive entries of k first,
// and a factor or a sum whose magnitude is less than 2^-126 is 0: this is what instructions for such products do.
//
// Of integers of 8 bits, the sum is exact:
//   dst = f32(sum of (src - its zero point) * (weights - their zero point)) * scale + bias
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel_ir.h"
#include "kernels/matmul_stack.h"

namespace lamina::kernel {

// The factors are of u8 or s8.
struct IntegerFactors {
  int32_t src_zero_point = 0, weights_zero_point = 0;
  std::vector<float> scales;  // of the product: one, or one per column
  Dims scale_strides = {};    // of the batch; empty: all are 0
};

struct Contraction {
  MatmulStack matrices;  // as few batch dims as possible
  bool adds = false;     // the result is added to dst, and there is no bias
  std::optional<IntegerFactors> integers = std::nullopt;
  bool multiplies_pairs = false;  // of bf16; both factors have this type

  Type sum_type() const;
  // Entries of k that are one element of a factor where sums are computed: pairs of integers or of bf16.
  int64_t entries() const { return integers || multiplies_pairs ? 2 : 1; }
  int64_t elements_of_k() const { return (matrices.k + entries() - 1) / entries(); }
};

// Of a step with LibraryStep::quantized, whose sums have `terms` products. Throws Error(unimplemented) if these may exceed 32
// bits.
IntegerFactors integer_factors_of(const LibraryStep& step, DataType src, DataType weights, int64_t terms);

// `step` must be a MatMul of floats or, with LibraryStep::quantized, of integers.
Contraction contraction_of(const LibraryStep& step);
// Of a step with LibraryStep::dequantized: the product with its dequantised weights, and rows if it has these
// (kernels/integer_rows.h), row after row in f32.
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
