// A compiled tiled step: threads take tiles, and each runs the small plan of a tile on slices of the args. If tiles add to
// sums, a thread takes all tiles of an entry of the loops before the loop over rows, or of a segment of its rows.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/run/plan_runner.h"
#include "backends/cpu/run/tile_lengths.h"
#include "interface/logical_tensor.h"

namespace lamina::cpu {

class TiledRunner {
 public:
  // The weights that are packed by the first execution only.
  struct Constants {
    std::function<bool(const kernel::Binding& arg)> contains;
    std::function<int(const kernel::Binding& arg, size_t bytes)> add;  // returns its number
  };
  TiledRunner(const kernel::TiledStep& step, const StepCompiler& compiler, const Constants& constants);

  void run(std::span<void* const> args, char* scratch, const Executor& executor, PackedConstants* constants) const;
  size_t scratch_bytes() const { return threads_at_ + static_cast<size_t>(slots_) * thread_bytes_; }
  const std::vector<PlanRunner::StepText>& texts() const { return texts_; }
  bool from_cache() const;
  // Whether the tiles read this input only as packed weights.
  bool is_only_packed(const kernel::TiledStep& step, size_t input) const;

 private:
  // Weights that all blocks of rows read. They are packed before the tiles run, once per entry of the other loops.
  struct Packing {
    uint64_t op;                 // the product
    size_t input;                // input number of the tile's plan
    const Primitive* primitive;  // in the plan of a full tile
    int64_t count;               // number of distinct weights
    Dims strides;                // per loop: distance between packings; 0 if the entries share one
    size_t at, bytes;            // in scratch, if it is not constant; size of one
    int constant;                // -1: packed by every execution
  };

  void list_packings(const kernel::TiledStep& step, const Constants& constants, TileUse& use);
  void add_shorter_plans(const kernel::TiledStep& step, const StepCompiler& compiler, TileUse& use);
  void place_packings(const kernel::TiledStep& step, const Constants& constants);
  bool is_read_once(const Dims& strides) const;
  void choose_wave();
  int64_t number_of(const Packing& packing, int64_t outer) const;
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
  const PlanRunner& plan_of(const Run& run, const Entries& entries) const;
  char* scratch_of(const Run& run, int thread) const {
    return run.scratch + threads_at_ + static_cast<size_t>(thread) * thread_bytes_;
  }

  // A sum to which tiles add, in f32.
  struct Sum {
    size_t arg;       // the output
    bool in_place;    // in the output itself
    bool by_segment;  // one copy per segment
    size_t at;        // offset among the sums of an entry
    size_t bytes;     // of a copy
    Dims strides;     // per loop: bytes from one entry or block to the next
  };
  void place_sums(const kernel::TiledStep& step, const StepCompiler& compiler);
  void run_entries(const Run& run, int64_t first, int64_t last, const Executor& team) const;
  void run_segment(const Run& run, int64_t outer, int64_t segment, char* sums, int thread) const;
  void clear(const Run& run, const Sum& sum, const Entries& entries, int64_t blocks, char* sums) const;
  void finish(const Run& run, int64_t outer, char* sums, int thread) const;
  char* place_of(const Run& run, const Sum& sum, const Entries& entries, char* sums) const;
  int64_t blocks_of_segment() const { return (loops_[row_loop_] + segments_ - 1) / segments_; }

  Dims loops_;       // numbers of entries, for rows and columns in blocks
  size_t row_loop_;  // loops after it: columns
  int64_t rows_, segments_;
  bool has_less_rows_, has_less_columns_;  // whether the last block is smaller
  size_t inputs_;
  std::vector<Dims> tile_origins_;  // per additional input of a tile, and loop: positions from one entry or block to the next
  std::vector<Dims> strides_;       // per arg and loop: bytes from one entry or block to the next
  std::vector<std::unique_ptr<const PlanRunner>> plans_;
  std::vector<std::unique_ptr<const PlanRunner>> shorter_plans_;  // per length
  std::optional<TileLengths> lengths_;
  size_t lengths_at_ = 0;  // offset in scratch
  std::vector<Sum> sums_;
  std::unique_ptr<const PlanRunner> finish_;  // null: all sums are in place
  // the thread that runs the entry finishes it; else all threads do, after its segments
  bool finishes_alone_ = true;
  size_t sum_bytes_ = 0, sums_at_ = 0;  // of an entry's sums; offset in the scratch of the thread or of all
  std::vector<Packing> packings_;
  int64_t outer_ = 1;  // entries of the loops before the loop over rows
  int64_t wave_ = 1;   // number of these at a time, so that packed weights need little memory
  int slots_;          // the largest number of threads
  size_t threads_at_ = 0, thread_bytes_ = 0;
  std::vector<PlanRunner::StepText> texts_;
};

}  // namespace lamina::cpu
