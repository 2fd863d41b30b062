// Rows among threads: whole, or divided along the row.
#pragma once

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// Whether rows of this kernel can be divided among threads: there is more than one part of a row.
bool may_be_split(const kernel::Kernel& kernel);

// Whether those are too short for threads to reduce parts of them: each thread reduces rows of its own, and the last phase
// alone, which sums columns, is divided by columns. A few blocks of rows would else be all that many threads share.
bool reduces_whole_rows(const kernel::Kernel& kernel);

// How threads share a kernel's rows, as far as it does not depend on how many threads there are.
class RowSharing {
 public:
  RowSharing(const kernel::Kernel& kernel, const Caches& caches);

  bool reduces_whole_rows() const { return reduces_whole_rows_; }
  // Elements: a split row is divided in multiples of this; a part of it that is reduced, in whole blocks.
  int64_t unit_of_split_row() const;
  // What the busiest of so many threads has of all rows' elements: of whole rows, or blocks of them; of parts of rows.
  double share_of_whole_rows(int threads) const;
  double share_of_parts(int threads) const;
  // Rows of a split kernel that go through the phases together: as many as the second-level caches of all threads hold, the
  // rows to come beside them.
  int64_t rows_between_barriers(int threads) const;
  // Whether few long rows of a kernel without row reductions are divided along the row, in blocks.
  bool divides_along_rows(int threads) const;

 private:
  int64_t rows_, row_size_;
  Footprint footprint_;
  Caches caches_;
  bool reduces_rows_, sums_columns_, reduces_whole_rows_;
};

}  // namespace lamina::cpu
