// GroupedMatMul as data (dispatch/grouped_step.h, dispatch/grouped_sums_step.h).
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/program/bytes.h"
#include "interface/data_type.h"

namespace lamina::cpu {

struct GroupedProgram {
  int64_t rows = 0;                             // of src
  int64_t to_next_row = 0, to_next_matrix = 0;  // of src and of weights, in bytes
  DataType dtype = DataType::f32;               // of dst
  int64_t row_stride = 0, column_stride = 0;    // of dst
  std::vector<int64_t> part_rows = {};          // ascending

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.rows), visit(self.to_next_row), visit(self.to_next_matrix), visit(self.dtype), visit(self.row_stride);
    visit(self.column_stride), visit(self.part_rows);
  }
};

// With one matrix of weights.
struct GroupedSumsProgram {
  int64_t terms = 0;                                            // columns of src, rows of weights
  int64_t to_next_column = 0, to_next_row = 0;                  // of src and of weights, in bytes
  DataType sums = DataType::f32, dtype = DataType::f32;         // dtype: of dst
  int64_t group_stride = 0, row_stride = 0, column_stride = 0;  // of dst
  int64_t part_terms = 1;                                       // of a part, at most
  bool adds_to_dst = false;                                     // else to scratch memory, which is then copied to dst

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.terms), visit(self.to_next_column), visit(self.to_next_row), visit(self.sums), visit(self.dtype);
    visit(self.group_stride), visit(self.row_stride), visit(self.column_stride), visit(self.part_terms);
    visit(self.adds_to_dst);
  }
};

}  // namespace lamina::cpu
