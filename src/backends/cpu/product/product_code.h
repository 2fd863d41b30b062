// The functions from which the CPU's matrix products are made: one register tile over some entries of k, the copy of a panel of
// weights, and the conversion of a row.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cpu/product/result_map.h"
#include "backends/cpu/program/product_calls.h"
#include "interface/data_type.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// What the code of a register tile depends on.
//
// Sums of s32 take pairs of successive entries of k at a time: a word of 32 bits with two integers of 16 bits is then one
// element of src and of a panel, or a pair of u8 or s8 in a panel of these. There is no bias.
//
// Pairs of bf16 are words in the same way; their type in the panel is f32, which is as wide. Weights of bf16 that stay in place
// are joined by the tile from two rows, which are half of `weights_k` apart.
struct ProductTile {
  kernel::Type type = kernel::Type::f32;  // of the sums, and of src, the bias and dst: f32, f64 or s32
  DataType weights = DataType::f32;       // in the panel; the tile converts them to `type`
  int32_t zero_point = 0;                 // of weights of u8 or s8
  int vector_bits = 512;
  int rows = 1, vectors = 1;
  DataType stored = DataType::f32;  // of dst if `type` is f32: as the sums, or narrower
  int last_lanes = 0;               // dst and the bias have only these first columns of the last vector; 0: all
  bool multiplies_pairs = false;    // of bf16
  // Prefetches this far behind the weights that it reads; along k, the next group of as many bytes of each column. 0: not.
  int64_t bytes_ahead = 0;
  bool prefetches_to_first = false;  // these, into the first-level cache, else into the second
  // Of the next panel (ProductStrides), which a step of the loop along k prefetches: at most one for each entry.
  int lines_of_next = 0;
  // Entries of k follow each other in src, and rows in the panel, whose distances in ProductStrides are not read.
  bool is_dense = false;
  // The vectors of the panel are ProductStrides::weights_vector apart, and each has all entries of k.
  bool splits_panels = false;
  // Copies rows of the next panel from a matrix of `copied` elements (ProductStrides).
  bool copies_next = false;
  DataType copied = DataType::f32;
  // Weights are contiguous along k, as wide as the sums or half as wide: the tile transposes them. It has one vector and no
  // pointers.
  bool along_k = false;
  // `src` is a list of pointers: to each row, for the first part of k, then for the next ones. `count` is that of a part.
  bool has_pointers = false;
  ColumnGroups groups = {};  // with pointers: those to the entries of the first group of dst
  ResultMap map = {};        // of the last block of k
};

std::string describe(const ProductTile& tile);

// Of k, for which a dense tile advances its pointers once.
int entries_of_step(const ProductTile& tile);

// A copy of a panel (PanelCopyFunction). `count` entries of u8 or s8 are pairs. To s32 means to words of two integers of 16
// bits, without the zero point. From bf16 with `joins_rows` means to words of two entries from two rows, and `count` is that of
// words.
struct PanelCopy {
  DataType from = DataType::f32, to = DataType::f32;  // the same; or a narrower float to f32; or u8 or s8 to s32
  int32_t zero_point = 0;                             // of u8 or s8
  bool is_paired = false;                             // rows of `from` have pairs
  bool joins_rows = false;                            // of bf16
  int vector_bits = 512;
  int vectors = 1;
  bool along_k = true;
  int64_t bytes_ahead = 0;  // prefetches this far along the contiguous dim; 0: not
  bool prefetches_to_first = false;
};

std::string describe(const PanelCopy& copy);

// A conversion of a row (RowConversionFunction).
struct RowConversion {
  DataType from = DataType::bf16, to = DataType::f32;  // one of them is f32; or from u8 or s8 to s32: integers of 16 bits
  int32_t zero_point = 0;                              // of u8 or s8
  int vector_bits = 512;
};

std::string describe(const RowConversion& conversion);

// A row of ScaledRowFunction.
struct ScaledRow {
  DataType to = DataType::f32;
  bool has_one_scale = false;  // scales[0]
  int vector_bits = 512;
};

std::string describe(const ScaledRow& row);

}  // namespace lamina::cpu
