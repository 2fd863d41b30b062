// Runs a compiled tiled step: threads take tiles, and each runs the small plan of a tile on slices of the args. If tiles add to
// sums, a thread takes all tiles of an entry of the loops before the loop over rows, or of a segment of its rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/dispatch/program_runner.h"
#include "backends/cpu/dispatch/tile_lengths.h"
#include "backends/cpu/program/tile_program.h"
#include "interface/logical_tensor.h"

namespace lamina::cpu {

// The programs that tiles run.
struct TilePlans {
  using Plan = std::shared_ptr<const ProgramRunner>;
  std::vector<Plan> tiles;    // as in kernel::TiledStep::plans
  std::vector<Plan> shorter;  // per length
  Plan finish;                // null: all sums are in place
};

class TileDispatch {
  using Packing = TileProgram::Packing;

 public:
  TileDispatch(TileProgram program, TilePlans plans);
  TileDispatch(const TileDispatch&) = delete;
  TileDispatch& operator=(const TileDispatch&) = delete;

  void run(std::span<void* const> args, char* scratch, const Executor& executor, PackedConstants* constants) const;
  size_t scratch_bytes() const { return program_.threads_at + static_cast<size_t>(program_.slots) * program_.thread_bytes; }
  // Weights that are packed once, number `packing` of the program.
  void pack_whole(size_t packing, std::span<void* const> args, char* scratch, char* packed, const Executor& team) const {
    const Packing& of = program_.packings[packing];
    pack(of, args, scratch, packed, 0, of.count - 1, team);
  }
  const TileProgram& program() const { return program_; }
  const TilePlans& plans() const { return plans_; }

 private:
  using Sum = TileProgram::Sum;

  const Primitive& primitive_of(const Packing& packing) const;
  char* packed(size_t packing, std::span<void* const> args, char* scratch, int64_t first, int64_t last, const Executor& team,
               PackedConstants* constants) const;
  void pack(const Packing& packing, std::span<void* const> args, char* scratch, char* packed, int64_t first, int64_t last,
            const Executor& team) const;

  // Per loop: the index of a tile's entry or block.
  using Entries = std::array<int64_t, kMaxRank>;
  Entries entries_of(int64_t tile) const;
  int64_t at(const Entries& entries, const Dims& strides) const;

  // Common to the tiles of one execution.
  struct Run {
    std::span<void* const> args;
    std::span<char* const> packed;
    char* scratch;
    TileLengths::Found lengths = {};
  };
  // `sums`: the sums of the tile's entry that are not in place.
  void run_tile(const Run& run, const Entries& entries, char* sums, int thread) const;
  const ProgramRunner& plan_of(const Run& run, const Entries& entries) const;
  char* scratch_of(const Run& run, int thread) const {
    return run.scratch + program_.threads_at + static_cast<size_t>(thread) * program_.thread_bytes;
  }

  void run_entries(const Run& run, int64_t first, int64_t last, const Executor& team) const;
  void run_segment(const Run& run, int64_t outer, int64_t segment, char* sums, int thread) const;
  void clear(const Run& run, const Sum& sum, const Entries& entries, int64_t blocks, char* sums) const;
  void finish(const Run& run, int64_t outer, char* sums, int thread) const;
  char* place_of(const Run& run, const Sum& sum, const Entries& entries, char* sums) const;
  int64_t blocks_of_segment() const { return (program_.loops[program_.row_loop] + program_.segments - 1) / program_.segments; }

  const TileProgram program_;
  const TilePlans plans_;
  std::optional<TileLengths> lengths_;
};

}  // namespace lamina::cpu
