// A tiled step, compiled: threads take tiles, each runs the small plan of a tile on slices of the args. Where tiles add to
// sums, what a thread takes is all tiles of an entry of the loops before that of the rows, or of a segment of its rows.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/plan_runner.h"
#include "interface/logical_tensor.h"

namespace lamina::cpu {

class TiledRunner {
 public:
  // Numbers of the args among the weights that are packed once; -1: others.
  using ConstantOf = std::function<int(const kernel::Binding& arg, size_t bytes)>;
  TiledRunner(const kernel::TiledStep& step, const StepCompiler& compiler, const ConstantOf& constant_of);

  void run(std::span<void* const> args, char* scratch, const Executor& executor, PackedConstants* constants) const;
  size_t scratch_bytes() const { return threads_at_ + static_cast<size_t>(slots_) * thread_bytes_; }
  const std::vector<PlanRunner::StepText>& texts() const { return texts_; }
  bool from_cache() const;

 private:
  // Weights that all blocks of rows read: packed once for each entry of the other loops, ahead of the tiles.
  struct Packing {
    uint64_t op;                 // the product
    size_t input;                // of the tile's plan
    const Primitive* primitive;  // in the plan of a whole tile
    int64_t count;               // different weights
    Dims strides;                // per loop: from one packing to the next; 0 where the entries share one
    size_t at, bytes;            // in scratch, if it is not constant; of one
    int constant;                // -1: packed by every execution
  };

  void list_packings(const kernel::TiledStep& step, TileUse& use);
  void place_packings(const kernel::TiledStep& step, const ConstantOf& constant_of);
  void choose_wave();
  int64_t number_of(const Packing& packing, int64_t outer) const;
  char* packed(size_t packing, std::span<void* const> args, char* scratch, int64_t first, int64_t last, const Executor& team,
               PackedConstants* constants) const;
  void pack(const Packing& packing, std::span<void* const> args, char* scratch, char* packed, int64_t first, int64_t last,
            const Executor& team) const;

  // Per loop: the entry, or block, of a tile.
  using Entries = std::array<int64_t, kMaxRank>;
  Entries entries_of(int64_t tile) const;
  int64_t at(const Entries& entries, const Dims& strides) const;

  // What the tiles of one execution share.
  struct Run {
    std::span<void* const> args;
    std::span<char* const> packed;
    char* scratch;
  };
  // `sums`: of the tile's entry, where such are not in place.
  void run_tile(const Run& run, const Entries& entries, char* sums, int thread) const;
  const PlanRunner& plan_of(const Entries& entries) const;
  char* scratch_of(const Run& run, int thread) const {
    return run.scratch + threads_at_ + static_cast<size_t>(thread) * thread_bytes_;
  }

  // A sum that tiles add to, in f32.
  struct Sum {
    size_t arg;       // the output
    bool in_place;    // in the output itself
    bool by_segment;  // a copy for each
    size_t at;        // among the sums of an entry
    size_t bytes;     // of a copy
    Dims strides;     // per loop: bytes from entry to entry, or block to block
  };
  void place_sums(const kernel::TiledStep& step, const StepCompiler& compiler);
  void run_entries(const Run& run, int64_t first, int64_t last, const Executor& team) const;
  void run_segment(const Run& run, int64_t outer, int64_t segment, char* sums, int thread) const;
  void clear(const Run& run, const Sum& sum, const Entries& entries, int64_t blocks, char* sums) const;
  void finish(const Run& run, int64_t outer, char* sums, int thread) const;
  char* place_of(const Run& run, const Sum& sum, const Entries& entries, char* sums) const;
  int64_t blocks_of_segment() const { return (loops_[row_loop_] + segments_ - 1) / segments_; }

  Dims loops_;       // entries, those of rows and columns in blocks
  size_t row_loop_;  // loops behind it: columns
  int64_t rows_, segments_;
  bool has_less_rows_, has_less_columns_;  // in the last block
  size_t inputs_;
  std::vector<Dims> tile_origins_;  // per further input of a tile, and loop: positions from entry to entry, or block to block
  std::vector<Dims> strides_;       // per arg and loop: bytes from one entry to the next, of blocks from block to block
  std::vector<std::unique_ptr<const PlanRunner>> plans_;
  std::vector<Sum> sums_;
  std::unique_ptr<const PlanRunner> finish_;  // null: all sums are in place
  bool finishes_alone_ = true;                // the thread that has the entry; else all, when its segments are done
  size_t sum_bytes_ = 0, sums_at_ = 0;        // of an entry's sums; where in scratch, of the thread or of all
  std::vector<Packing> packings_;
  int64_t outer_ = 1;  // entries of the loops before that of the rows
  int64_t wave_ = 1;   // of these at a time, so that packed weights take little memory
  int slots_;          // most threads at once
  size_t threads_at_ = 0, thread_bytes_ = 0;
  std::vector<PlanRunner::StepText> texts_;
};

}  // namespace lamina::cpu
