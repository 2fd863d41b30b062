// The work of a walk at one chunk of vectors: the values of the nodes, then their uses (stores, column sums, accumulators).
#pragma once

#include <span>
#include <vector>

#include "backends/cpu/emit/parts.h"

namespace lamina::cpu {

// The rows, nodes and roots of a walk.
struct WalkTask {
  std::vector<Row*> rows;  // that run together; one if the walk reduces
  NodeList nodes;          // computed in this walk, or read back
  std::span<Root> roots;
  int phase;
  int step;  // elements, or positions across rows, per iteration
};

class Body : private Part {
 public:
  Body(Parts& parts, const WalkTask& task);

  // Emits the work for the vectors of a chunk or, across rows, for positions, `run` of which are consecutive.
  void operator()(const std::vector<Lanes>& chunk, size_t run) const;
  void operator()(const std::vector<Lanes>& chunk) const { (*this)(chunk, chunk.size()); }
  // Along rows: emits the part of a chunk that pass `number` of passes() covers.
  void in_pass(const std::vector<Lanes>& chunk, size_t number) const;

  // The dims of the row from `dim` on are complete: stores the sums of the segments that end with them.
  void end_segments(size_t dim) const;

  bool computes_function() const { return plan_.has_function(task_.nodes); }  // one that needs many operations
  std::span<Root> roots() const { return task_.roots; }
  bool streams() const { return streams_; }  // stores bypass the caches
  size_t passes() const { return passes_; }  // over the elements, each for a part of the virtual lanes

 private:
  using PerRow = std::vector<ValueList>;  // per row: one value per vector
  struct AtChunk {
    const std::vector<Lanes>& lanes;
    std::vector<std::vector<ElementValues>> known;  // per row and vector: values that are computed already; may be empty
    std::vector<PerRow> waiting;                    // per root: values that are stored together with later vectors
  };
  void at_part(const std::vector<Lanes>& lanes, size_t from, size_t to) const;  // vectors [from, to)
  std::vector<ElementValues> known_ahead(const Row& row, const std::vector<Lanes>& lanes) const;
  void at_vectors(AtChunk& chunk, size_t first, size_t count) const;
  void compute_side_by_side(const Row& row, kernel::NodeIndex index, std::span<const Lanes> vectors,
                            std::vector<ElementValues>& values) const;
  llvm::Value* live_or_computed(const Row& row, kernel::NodeIndex index, const Lanes& lanes, const ElementValues& known) const;
  llvm::Value* live_address(const Row& row, kernel::NodeIndex index, const Lanes& lanes) const;
  // operands[row][vector]: for the chunk's vectors from `first` on.
  void at_root(AtChunk& chunk, size_t root, size_t first, const PerRow& operands) const;
  void collect_block(const AtChunk& chunk, const Root& root, PerRow& waiting, size_t first, const ValueList& operands) const;
  void store(const AtChunk& chunk, const kernel::Node& n, PerRow& waiting, size_t first, const PerRow& operands) const;
  void store_vectors(const AtChunk& chunk, const Store& to, size_t first, const PerRow& operands) const;
  size_t vectors_of_stores() const;
  bool non_temporal(int arg) const;
  bool is_short_function() const;
  size_t vectors_together() const;

  Parts& p_;
  const WalkTask& task_;
  const bool streams_;
  const size_t passes_;
  const size_t together_;  // vectors that are interleaved
};

}  // namespace lamina::cpu
