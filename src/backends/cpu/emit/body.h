// What a walk does at a chunk of vectors: the values of the nodes there, then what becomes of them (stores, column sums,
// accumulators).
#pragma once

#include <span>
#include <vector>

#include "backends/cpu/emit/parts.h"

namespace lamina::cpu {

// What a walk is for.
struct WalkTask {
  std::vector<Row*> rows;  // that go together; one where the walk reduces
  NodeList nodes;          // computed on the way, or read back
  std::span<Root> roots;
  int phase;
  int step;  // elements, or positions across rows, of an iteration
};

class Body : private Part {
 public:
  Body(Parts& parts, const WalkTask& task);

  // At the vectors of a chunk or, across rows, at positions, of which `run` at a time follow each other.
  void operator()(const std::vector<Lanes>& chunk, size_t run) const;
  void operator()(const std::vector<Lanes>& chunk) const { (*this)(chunk, chunk.size()); }

  bool computes_function() const { return p_.phases.has_function(task_.nodes); }  // one of many operations
  std::span<Root> roots() const { return task_.roots; }
  bool streams() const { return streams_; }  // stores go past the caches

 private:
  using PerRow = std::vector<ValueList>;  // per row, a value of each vector
  struct AtChunk {
    const std::vector<Lanes>& lanes;
    std::vector<std::vector<ElementValues>> known;  // per row and vector, what is known already; none where nothing is
    std::vector<PerRow> waiting;                    // per root, what leaves with vectors that come later
  };
  std::vector<ElementValues> known_ahead(const Row& row, const std::vector<Lanes>& lanes) const;
  void at_vectors(AtChunk& chunk, size_t first, size_t count) const;
  llvm::Value* live_or_computed(const Row& row, kernel::NodeIndex index, const Lanes& lanes, const ElementValues& known) const;
  llvm::Value* live_address(const Row& row, kernel::NodeIndex index, const Lanes& lanes) const;
  // operands[row][vector]: of vectors `first` and after of the chunk.
  void at_root(AtChunk& chunk, size_t root, size_t first, const PerRow& operands) const;
  void collect_block(const AtChunk& chunk, const Root& root, PerRow& waiting, size_t first, const ValueList& operands) const;
  void store(const AtChunk& chunk, const kernel::Node& n, PerRow& waiting, size_t first, const PerRow& operands) const;
  void store_vectors(const AtChunk& chunk, const Store& to, size_t first, const PerRow& operands) const;
  bool stores_pairs_of_vectors(const Root& root) const;
  bool non_temporal(int arg) const;
  bool is_short_function() const;

  Parts& p_;
  const WalkTask& task_;
  const bool one_by_one_;  // vectors, else those of a chunk side by side
  const bool streams_;
};

}  // namespace lamina::cpu
