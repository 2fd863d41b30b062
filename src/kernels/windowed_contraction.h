// A convolution as a kernel: a matrix product whose left factor is read through a sliding window. What it computes, to the bit,
// independent of tiles, blocks, threads and devices.
//
// An element of dst is one chain of fused multiply-adds in the order of the terms, starting from 0:
//   sum = fma(left[row, term], right[term, column], sum)
// in f64 if a factor is f64, else in f32, to which narrower factors are converted exactly. A pixel outside of left is 0, and is
// multiplied. Then the bias is added, and the result is rounded once to the type of dst. Sums of integers of 8 bits are exact,
// as in kernels/contraction.h; a pixel outside of left is then left's zero point.
//
//   dst          rows                       columns                    terms
//   positions    sample, positions          channels of the positions  taps, channels of the image
//   image        sample, pixels             channels of the image      taps, channels of the positions
//   weights      taps, channels of image    channels of the positions  sample, positions
//
// There is such a product per group of channels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/contraction.h"
#include "kernels/kernel_ir.h"
#include "kernels/plan.h"
#include "kernels/window_axis.h"

namespace lamina::kernel {

struct WindowedContraction {
  using Dim = WindowDim;
  using Axis = WindowAxis;
  struct Tensor {
    DataType dtype = DataType::undef;
    size_t port = 0;  // the step's arg
  };

  // Rows are outer_rows, the axes' rows and inner_rows, the last of which varies fastest; terms likewise.
  Dim groups, outer_rows, inner_rows, columns, outer_terms, inner_terms;
  std::vector<Axis> axes;
  bool sums_samples = false;      // samples are terms, else rows
  Tensor left, right, bias, dst;  // bias.dtype undef: there is none
  // Scales: one, or one per column of each group. The strides of the batch are not used.
  std::optional<IntegerFactors> integers = std::nullopt;

  int64_t row_count() const;
  int64_t term_count() const;
  bool has_bias() const { return bias.dtype != DataType::undef; }
  Type sum_type() const;
};

// `step` must be a convolution of floats or, with LibraryStep::quantized, of integers; or a gradient of floats.
WindowedContraction windowed_contraction_of(const LibraryStep& step);

// "2 groups of [196, 576] by [576, 64], f32 windows of 3 x 3".
std::string print(const WindowedContraction& contraction);

// `bias` may be null if there is none.
void interpret(const WindowedContraction& contraction, const void* left, const void* right, const void* bias, void* dst);

}  // namespace lamina::kernel
