// The functions from which the CPU's matrix products are made: one register tile over some entries of k, the copy of a panel of
// weights, and the conversion of a row.
#pragma once

#include <cstdint>
#include <string>

#include "interface/data_type.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// The bytes of an element of a panel: of a pair if it is of u8 or s8.
inline int64_t element_bytes(DataType dtype) { return bytes_of(dtype, is_byte_integer(dtype) ? 2 : 1); }

// Columns of a product that read other entries of src: a convolution in groups of few channels. Each `columns` of dst are a
// group, and its entries of a row of src are `step` elements after those of the group before.
struct ColumnGroups {
  int columns = 0;  // a divisor of the lanes of a vector; 0: all columns read the same entries
  int64_t step = 0;
  bool operator==(const ColumnGroups&) const = default;
};

// What the code of a register tile depends on.
//
// Sums of s32 take pairs of successive entries of k at a time: a word of 32 bits with two integers of 16 bits is then one
// element of src and of a panel, or a pair of u8 or s8 in a panel of these. There is no bias.
//
// Pairs of bf16 are words in the same way; their type in the panel is f32, which is as wide. Weights of bf16 that stay in place
// are joined by the tile from two rows, which are half of `weights_k` apart.
struct ProductTile {
  kernel::Type type = kernel::Type::f32;  // of the sums and dst, and of src and the bias: f32, f64 or s32
  DataType weights = DataType::f32;       // in the panel; the tile converts them to `type`
  int32_t zero_point = 0;                 // of weights of u8 or s8
  int vector_bits = 512;
  int rows = 1, vectors = 1;
  int last_lanes = 0;             // dst and the bias have only these first columns of the last vector; 0: all
  bool multiplies_pairs = false;  // of bf16
  int64_t bytes_ahead = 0;        // prefetches this far behind the weights that it reads; 0: not
  // Weights are contiguous along k, as wide as the sums or half as wide: the tile transposes them. It has one vector and no
  // pointers.
  bool along_k = false;
  // `src` is a list of pointers: to each row, for the first part of k, then for the next ones. `count` is that of a part.
  bool has_pointers = false;
  ColumnGroups groups = {};  // with pointers: those to the entries of the first group of dst
};

// Distances between rows, in bytes, and between entries of k; `weights_k` is that between columns if weights are along k.
// `next_tile`: from dst to that of the tile which follows. `parts`: of k, with pointers to their rows. `tiles` of successive
// rows are computed: with distances of src, or of its pointers, and of dst. `first_group`: from the pointers to the entries of
// the tile's first group.
struct ProductStrides {
  int64_t src_row, src_k, weights_k, dst_row, bias_row, next_tile, parts = 1, tiles = 1, src_tile = 0, dst_tile = 0,
                                                                   first_group = 0;
};

// sums = (continues ? dst : 0) + the chain over `count` entries of k; then dst = bias == null ? sums : sums + bias.
// Columns of weights, bias and dst are contiguous. Weights have as many as the tile's vectors have lanes, also where dst ends
// before.
using ProductTileFunction = void (*)(const void* src, const void* weights, void* dst, const void* bias, int64_t count,
                                     const ProductStrides* strides, int64_t continues);

std::string describe(const ProductTile& tile);

// Copies `count` entries of k of a panel to to[k * columns + column], from from[k * stride + column] or, if the weights are
// contiguous along k, from[column * stride + k], and converts them. `stride` is in bytes.
using PanelCopyFunction = void (*)(const void* from, int64_t stride, void* to, int64_t count);

//
// `count` entries of u8 or s8 are pairs. To s32 means to words of two integers of 16 bits, without the zero point. From bf16
// with `joins_rows` means to words of two entries from two rows, and `count` is that of words.
struct PanelCopy {
  DataType from = DataType::f32, to = DataType::f32;  // the same; or a narrower float to f32; or u8 or s8 to s32
  int32_t zero_point = 0;                             // of u8 or s8
  bool is_paired = false;                             // rows of `from` have pairs
  bool joins_rows = false;                            // of bf16
  int vector_bits = 512;
  int vectors = 1;
  bool along_k = true;
  int64_t bytes_ahead = 0;  // prefetches this far along the contiguous dim; 0: not
};

std::string describe(const PanelCopy& copy);

// Converts `count` contiguous elements, or subtracts a zero point from them. The elements of `from` may be the last ones of the
// memory of `to` if those are wider, and the first ones if those are narrower.
using RowConversionFunction = void (*)(const void* from, void* to, int64_t count);

struct RowConversion {
  DataType from = DataType::bf16, to = DataType::f32;  // one of them is f32; or from u8 or s8 to s32: integers of 16 bits
  int32_t zero_point = 0;                              // of u8 or s8
  int vector_bits = 512;
};

std::string describe(const RowConversion& conversion);

// to[i] = f32(sums[i]) * scales[i] + bias[i], for `count` elements. `bias` may be null. `to` may be `sums`.
using ScaledRowFunction = void (*)(const int32_t* sums, const float* scales, const float* bias, void* to, int64_t count);

struct ScaledRow {
  DataType to = DataType::f32;
  bool has_one_scale = false;  // scales[0]
  int vector_bits = 512;
};

std::string describe(const ScaledRow& row);

}  // namespace lamina::cpu
