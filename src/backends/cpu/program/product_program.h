// A compiled matrix product as data: everything that its execution needs besides its machine code.
#pragma once

#include <cstdint>
#include <vector>

#include "interface/data_type.h"
#include "kernels/matrix_stack.h"

namespace lamina::cpu {

// The fewest rows for which a panel that is copied in a call is cut between two threads, which then both copy it, so that
// threads have equal shares.
inline constexpr int64_t kRowsOfCutPanel = 17;

struct ProductProgram {
  kernel::MatmulStack matrices = {};
  int64_t k = 0;        // elements, of `entries` entries each
  int64_t entries = 1;  // pairs of integers or of bf16
  bool adds = false, multiplies_pairs = false, multiplies_integers = false;
  std::vector<float> scales = {};  // of a product of integers
  Dims scale_strides = {};
  DataType sum_type = DataType::f32, bias_type = DataType::f32;  // in register tiles
  DataType stored_type = DataType::f32;                          // of dst, if register tiles write to it
  DataType panel_type = DataType::f32;                           // of the panels that register tiles read
  DataType copied_type = DataType::f32;                          // of the panels that are copied from the matrix, or packed
  int threads = 1;                                               // at most
  bool is_worth_threads = false;
  // The schedule (product/product_fields.def), and columns of a panel.
  int64_t rows = 1, vectors = 1, columns = 1, k_block = 0, row_block = 0, column_block = 0;
  bool copies_panels = true, panels_first = true, copies_rows = false, copies_next = false, splits_panels = false;
  // The weights, as ProductWeights has them.
  bool are_packed_ahead = false;
  int64_t packed_k = 0, packed_n = 0;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.matrices), visit(self.k), visit(self.entries), visit(self.adds), visit(self.multiplies_pairs);
    visit(self.multiplies_integers), visit(self.scales), visit(self.scale_strides), visit(self.sum_type);
    visit(self.bias_type), visit(self.stored_type), visit(self.panel_type), visit(self.copied_type), visit(self.threads);
    visit(self.is_worth_threads), visit(self.rows), visit(self.vectors), visit(self.columns), visit(self.k_block);
    visit(self.row_block), visit(self.column_block), visit(self.copies_panels), visit(self.panels_first);
    visit(self.copies_rows), visit(self.copies_next), visit(self.splits_panels), visit(self.are_packed_ahead),
        visit(self.packed_k), visit(self.packed_n);
  }
};

}  // namespace lamina::cpu
