// Rows among threads: whole, or divided along the row.
#pragma once

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// Whether rows of this kernel can be divided among threads: there is more than one part of a row.
bool may_be_split(const kernel::Kernel& kernel);

// Whether they may gain by it: few of them, or such as overflow the cache.
bool can_split(const kernel::Kernel& kernel, const Caches& caches);

// Of those the ones too short for threads to reduce parts of them: each thread reduces rows of its own, and the last phase
// alone, which sums columns, is divided by columns. A few blocks of rows would else be all that many threads share.
bool reduces_whole_rows(const kernel::Kernel& kernel);

// A row, the next one and what rows share, which is most of it, leave too little of the second-level cache: half a row, with
// half of what is shared, does better.
bool overflows_cache(const Footprint& bytes, const Caches& caches);

// How threads share a kernel's rows, as far as it does not depend on how many threads there are.
class RowSharing {
 public:
  RowSharing(const kernel::Kernel& kernel, const Caches& caches);

  bool reduces_whole_rows() const { return reduces_whole_rows_; }
  // Elements: a split row is divided in multiples of this; a part of it that is reduced, in whole blocks.
  int64_t unit_of_split_row() const;
  // Whether so many threads are less long busy with parts of rows than with whole rows, or blocks of them. Only where
  // can_split.
  bool gains_by_split(int threads) const;
  // Rows that then go through the phases together: so many that each thread has some work between two barriers, if they fit the
  // second-level caches of all threads, the rows to come beside them, with some room to spare.
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
