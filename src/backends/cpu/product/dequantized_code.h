// The functions with which products read weights of 4 and 8 bits (kernels/quantized_matrix.h).
//
// program/quantized_panel.h describes the panels that they read.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cpu/program/quantized_panel.h"
#include "interface/data_type.h"

namespace lamina::cpu {

// ProductTileFunction, but `weights` is a QuantizedPanelMemory, `count` entries of k are whole runs, and src is contiguous
// along k. With 0 rows, it writes the dequantised weights to dst instead: `count` rows of the panel's columns.
struct DequantizedTile {
  QuantizedPanel panel;
  int rows = 1;
  int64_t bytes_ahead = 0;  // prefetches words this far ahead; 0: not
};

std::string describe(const DequantizedTile& tile);

// ProductTileFunction of integers (kernels/integer_rows.h): `weights` is a QuantizedPanelMemory, and src has rows of
// program/integer_row.h. `count` is all of k; dst is not read.
struct IntegerTile {
  QuantizedPanel panel;
  int rows = 1;
  bool has_zero_points = false;  // the rows
  int64_t bytes_ahead = 0;       // prefetches words this far ahead; 0: not
};

std::string describe(const IntegerTile& tile);

// PanelCopyFunction: `count` rows of words from the rows of a matrix, each of which has 8 or 4 rows of the matrix. The weights
// of a row are contiguous, from a whole byte on.
struct WordCopy {
  DataType dtype = DataType::s4;
  int vector_bits = 512;
  int vectors = 1;
};

std::string describe(const WordCopy& copy);

}  // namespace lamina::cpu
