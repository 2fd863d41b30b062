// Panels of weights of 4 and 8 bits, which register tiles read (product/dequantized_code.h). A panel has the columns of a
// register tile. A word of 32 bits holds 8 or 4 successive entries of k of one column, the first one in the lowest bits; the
// words of all columns are a row of the panel. A run is a number of entries of k that share their scales and start in a new
// word. So lanes are columns, and a register tile unpacks, dequantises and multiplies without moving data between lanes.
//
//   words        rows of words, run after run
//   scales       a row per run
//   zero points  likewise, in f32
#pragma once

#include <cstdint>

#include "interface/data_type.h"

namespace lamina::cpu {

struct QuantizedPanel {
  DataType dtype = DataType::s4;
  int vector_bits = 512;
  int vectors = 1;
  int64_t run = 32;  // entries of k
  DataType scales = DataType::f32;
  bool has_zero_points = false;
  DataType rounds_to = DataType::f32;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.dtype), visit(self.vector_bits), visit(self.vectors), visit(self.run), visit(self.scales);
    visit(self.has_zero_points), visit(self.rounds_to);
  }

  int64_t columns() const { return int64_t{vectors} * vector_bits / 32; }
  int64_t entries_of_word() const { return 32 / bits_of(dtype); }
  int64_t words_of_run() const { return (run + entries_of_word() - 1) / entries_of_word(); }
};

struct QuantizedPanelMemory {
  const void *words, *scales, *zero_points;
};

}  // namespace lamina::cpu
