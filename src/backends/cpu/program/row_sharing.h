// How threads share the rows of a kernel, as far as it does not depend on the number of threads.
#pragma once

#include <cstdint>

namespace lamina::cpu {

// What decides it. schedule/sharing.h computes it from a kernel.
struct RowSharing {
  int64_t rows = 0, row_size = 0;
  int64_t read_bytes = 0, shared_bytes = 0;  // that only one row reads, and that all rows share
  int64_t second_cache = 0;                  // bytes, of one core
  bool reduces_rows = false, sums_columns = false;
  bool reduces_whole_rows = false;  // rows are too short for threads to reduce parts of them

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.rows), visit(self.row_size), visit(self.read_bytes), visit(self.shared_bytes), visit(self.second_cache);
    visit(self.reduces_rows), visit(self.sums_columns), visit(self.reduces_whole_rows);
  }

  // In elements: a split row is divided in multiples of this; a part that is reduced, in whole blocks.
  int64_t unit_of_split_row() const;
  // The fraction of all elements that the busiest of `threads` threads has, with whole rows (or blocks of them) and with
  // parts of rows.
  double share_of_whole_rows(int threads) const;
  double share_of_parts(int threads) const;
  // Rows of a split kernel that run the phases together: as many as fit the second-level caches of all threads together with
  // the next rows.
  int64_t rows_between_barriers(int threads) const;
  // Whether the few long rows of a kernel without row reductions are divided along the row, in blocks.
  bool divides_along_rows(int threads) const;
};

}  // namespace lamina::cpu
