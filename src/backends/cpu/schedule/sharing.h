// How rows are divided among threads: as a whole, or along the row.
#pragma once

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// Whether rows of this kernel can be divided among threads, which needs more than one part per row.
bool may_be_split(const kernel::Kernel& kernel);

// Whether rows are too short for threads to reduce parts of them. Each thread then reduces whole rows, and only the last
// phase, which sums columns, is divided by columns. Otherwise many threads would share only a few blocks of rows.
bool reduces_whole_rows(const kernel::Kernel& kernel);

// How threads share a kernel's rows, as far as it does not depend on the number of threads.
class RowSharing {
 public:
  RowSharing(const kernel::Kernel& kernel, const Caches& caches);

  bool reduces_whole_rows() const { return reduces_whole_rows_; }
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

 private:
  int64_t rows_, row_size_;
  Footprint footprint_;
  Caches caches_;
  bool reduces_rows_, sums_columns_, reduces_whole_rows_;
};

}  // namespace lamina::cpu
