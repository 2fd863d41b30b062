// Chooses, in each execution, the tiles that leave out columns which a causal mask hides (kernel::ShorterTiles).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/threads/executor.h"
#include "kernels/plan.h"

namespace lamina::cpu {

class TileLengths {
 public:
  // A dim of the values that a tile reads, in elements.
  struct Extent {
    int64_t count, stride;
  };

  // `loops`: numbers of entries and of blocks. `strides`: of the values, in bytes from one entry or block to the next.
  TileLengths(const kernel::TiledStep& step, const Dims& loops, const Dims& strides);

  size_t scratch_bytes() const { return static_cast<size_t>(count_); }

  // What one execution found.
  struct Found {
    bool may_leave_out = false;
    int64_t seen_more = 0;  // row r sees the columns before r + seen_more
    const char* are_finite = nullptr;
  };
  // `scratch`: scratch_bytes() bytes, which Found uses.
  Found look(std::span<void* const> args, char* scratch, const Executor& team) const;

  // The number of the length for a block of rows; nothing: the tile needs all columns. `entries`: per loop.
  std::optional<size_t> length_of(const Found& found, std::span<const int64_t> entries) const;

 private:
  int64_t seen_more(std::span<void* const> args) const;
  std::optional<size_t> length_of(int64_t seen_more, int64_t block) const;

  bool are_finite(const void* values) const;

  kernel::ShorterTiles tiles_;
  std::vector<LogicalTensor> inputs_;
  int64_t all_rows_, rows_;
  size_t row_loop_;
  std::vector<Extent> dims_;  // of the values, by falling strides
  Dims loops_, strides_;      // of the values
  Dims numbers_;              // per loop: distance between numbers of distinct values
  int64_t count_ = 1;         // distinct values
};

}  // namespace lamina::cpu
