// Chooses, in each execution, the tiles that leave out columns which a causal mask hides (kernel::ShorterTiles).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backends/cpu/program/tile_program.h"
#include "backends/cpu/threads/executor.h"

namespace lamina::cpu {

class TileLengths {
 public:
  // `program` must outlive this.
  explicit TileLengths(const TileLengthsProgram& program) : program_(program) {}

  size_t scratch_bytes() const { return static_cast<size_t>(program_.count); }

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

  const TileLengthsProgram& program_;
};

}  // namespace lamina::cpu
