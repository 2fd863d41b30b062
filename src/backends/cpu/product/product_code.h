// The two functions from which the CPU's matrix products are made: one register tile over some entries of k, and the copy of a
// panel of weights.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// What the code of a register tile depends on.
struct ProductTile {
  kernel::Type type = kernel::Type::f32;  // of both factors, the sums and dst; f32 or f64
  int vector_bits = 512;
  int rows = 1, vectors = 1;
  bool prefetches = false;  // the same rows of the next panel
};

// Distances between rows, in bytes, and between entries of k.
struct ProductStrides {
  int64_t src_row, src_k, weights_k, dst_row, bias_row;
};

// sums = (continues ? dst : 0) + the chain over `count` entries of k; then dst = bias == null ? sums : sums + bias.
// Columns of weights, bias and dst are contiguous, and there are as many as the tile's vectors have lanes.
using ProductTileFunction = void (*)(const void* src, const void* weights, void* dst, const void* bias, int64_t count,
                                     const ProductStrides* strides, int64_t continues);

std::string describe(const ProductTile& tile);

// Copies `count` entries of k of a panel to to[k * columns + column], from from[k * stride + column] or, if the weights are
// contiguous along k, from[column * stride + k]. `stride` is in bytes.
using PanelCopyFunction = void (*)(const void* from, int64_t stride, void* to, int64_t count);

struct PanelCopy {
  kernel::Type type = kernel::Type::f32;
  int vector_bits = 512;
  int vectors = 1;
  bool along_k = true;
  int64_t bytes_ahead = 0;  // prefetches this far along the contiguous dim; 0: not
};

std::string describe(const PanelCopy& copy);

}  // namespace lamina::cpu
