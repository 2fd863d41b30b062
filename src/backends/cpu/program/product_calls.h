// The interface between the runtime and generated code of matrix products (product/product_code.h): how the functions are
// called.
#pragma once

#include <cstdint>

#include "interface/data_type.h"

namespace lamina::cpu {

// The bytes of an element of a panel: of a pair if it is of u8 or s8.
inline int64_t element_bytes(DataType dtype) { return bytes_of(dtype, is_byte_integer(dtype) ? 2 : 1); }

// Columns of a product that read other entries of src: a convolution in groups of few channels. Each `columns` of dst are a
// group, and its entries of a row of src are `step` elements after those of the group before.
struct ColumnGroups {
  int columns = 0;  // a divisor of the lanes of a vector; 0: all columns read the same entries
  int64_t step = 0;
  bool operator==(const ColumnGroups&) const = default;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.columns), visit(self.step);
  }
};

// Distances between rows, in bytes, and between entries of k; `weights_k` is that between columns if weights are along k.
// `next_tile`: from dst to that of the tile which follows. `parts`: of k, with pointers to their rows. `tiles` of successive
// rows are computed, or of successive columns: with distances of src, or of its pointers, of dst, and of weights.
// `first_group`: from the pointers to the entries of the tile's first group. `ahead`: from the weights to those that are used
// next, of which tiles of code that prefetches them prefetch one line for each entry of k, `ahead_k` after the one before.
// `ends`: not 0 for the last block of k. Tiles of code that copies the next panel copy `copied_rows` rows of it each, one after
// each `copied_steps` entries of k: from `copied_from`, with this distance between its rows, to `copied_to`. `weights_vector`:
// from one vector of the panel to the next, if it is split.
struct ProductStrides {
  int64_t src_row, src_k, weights_k, dst_row, bias_row, next_tile, parts = 1, tiles = 1, src_tile = 0, dst_tile = 0,
                                                                   first_group = 0, ahead = 0, ahead_k = 0, ends = 0;
  int64_t copied_rows = 0, copied_steps = 0, copied_row = 0;
  const void* copied_from = nullptr;
  void* copied_to = nullptr;
  int64_t weights_tile = 0, weights_vector = 0;
};

// sums = (continues ? dst : 0) + the chain over `count` entries of k; then dst = bias == null ? sums : sums + bias.
// Columns of weights, bias and dst are contiguous. Weights have as many as the tile's vectors have lanes, also where dst ends
// before.
using ProductTileFunction = void (*)(const void* src, const void* weights, void* dst, const void* bias, int64_t count,
                                     const ProductStrides* strides, int64_t continues);

// Distances in bytes, and counts. `lines`: of the window. `pixel`, `term`: between the pixels of src that successive elements
// of dst, and successive terms of a line, multiply. `weights`: between terms. `tiles` of successive pixels are computed, and
// `blocks` of successive channels of each. `channels`: of src. Dense tiles prefetch two lines of a cache for each term of a
// channel: of the weights that follow after `ahead` bytes, `ahead_term` after the one before, and of the next tile's pixels,
// `pixels_term` after the one before.
struct LineStrides {
  int64_t lines, pixel, term, weights, dst_pixel, tiles, src_tile, dst_tile, blocks, channel, channels;
  int64_t ahead = 0, ahead_term = 0, pixels_term = 0;
};

// Some pixels of a line of dst, for the columns of some vectors: dst = the chain, plus bias if it is not null. `lines`: per
// line of the window its pixel 0; null: the line is outside of the image. `first`: from there to the pixel that the first
// element multiplies by the first term, which may be outside of the image.
using LineTileFunction = void (*)(const void* const* lines, int64_t first, const void* weights, void* dst, const void* bias,
                                  const LineStrides* strides);

// Distances in bytes, and counts. `lines`: of the positions, one `line` after the other. `position`: between successive ones of
// a line. `pixel`: between the pixels that these see by one tap; `tap`: by successive taps. `inner`: the positions of a line
// for which all taps are inside of the image.
struct TapStrides {
  int64_t lines, line, position, pixel, tap, inner;
};

// Adds to the sums of some rows of taps, for the channels of some vectors. `pixels`: per line and row of taps, the distance in
// bytes from `image` to the pixel that the first tap sees at the first position, which may be outside of the image;
// kOutsideOfImage: the row is outside. `sums`: per row, tap and vector, whole vectors.
using TapTileFunction = void (*)(const void* image, const int64_t* pixels, const void* positions, void* sums,
                                 const TapStrides* strides);
inline constexpr int64_t kOutsideOfImage = INT64_MIN;

// Copies `count` entries of k of a panel to to[k * columns + column], from from[k * stride + column] or, if the weights are
// contiguous along k, from[column * stride + k], and converts them. `stride` is in bytes.
using PanelCopyFunction = void (*)(const void* from, int64_t stride, void* to, int64_t count);

// Converts `count` contiguous elements, or subtracts a zero point from them. The elements of `from` may be the last ones of the
// memory of `to` if those are wider, and the first ones if those are narrower.
using RowConversionFunction = void (*)(const void* from, void* to, int64_t count);

// to[i] = f32(sums[i]) * scales[i] + bias[i], for `count` elements. `bias` may be null. `to` may be `sums`.
using ScaledRowFunction = void (*)(const int32_t* sums, const float* scales, const float* bias, void* to, int64_t count);

}  // namespace lamina::cpu
