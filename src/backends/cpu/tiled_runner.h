// A tiled step, compiled: threads take tiles, each runs the small plan of a tile on slices of the args.
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
  using ConstantOf = std::function<int(const kernel::Binding& arg)>;
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
  void run_tile(std::span<void* const> args, std::span<char* const> packed, char* scratch, int64_t tile, int thread) const;
  // Per loop: the entry, or block of rows, of a tile.
  using Entries = std::array<int64_t, kMaxRank>;
  Entries entries_of(int64_t tile) const;
  int64_t at(const Entries& entries, const Dims& strides) const;

  Dims loops_;  // entries, the last in blocks
  int64_t rows_, last_rows_;
  size_t inputs_;
  std::vector<Dims> strides_;  // per arg and loop: bytes from one entry to the next, of the last from block to block
  std::vector<std::unique_ptr<const PlanRunner>> plans_;
  std::vector<Packing> packings_;
  int64_t outer_ = 1;  // entries of all loops but the last
  int64_t wave_ = 1;   // of these at a time, so that packed weights take little memory
  int slots_;          // most threads at once
  size_t threads_at_ = 0, thread_bytes_ = 0;
  std::vector<PlanRunner::StepText> texts_;
};

}  // namespace lamina::cpu
