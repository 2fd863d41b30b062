// What runs in which phase: the roots (reductions, stores of elements, column sums) of each phase's walk over a row, the
// nodes that it computes for them, and those of them that are live between walks. Emits nothing.
#pragma once

#include <vector>

#include "backends/cpu/emit/emission.h"

namespace lamina::cpu {

class Phases {
 public:
  explicit Phases(const Emission& emission);

  int count() const { return kernel_.phase_count(); }
  int last() const { return count() - 1; }
  NodeList roots_of(int phase) const;
  int loop_of(kernel::NodeIndex root) const;  // the phase in whose loop a root runs
  // The element nodes that a phase's loop computes for `roots` or reads from the row buffer, in order.
  NodeList nodes_for(const NodeList& roots, int phase) const;
  // Whether only second walks for mean and variance run in this phase.
  bool may_be_skipped(int phase) const;
  std::vector<int> usual_walks() const;       // the walks that every row has
  bool reduces(const NodeList& roots) const;  // whether any of them sums along the row
  // For rows of several blocks, a second walk over the whole row would miss the first-level cache.
  bool moments_by_block() const { return e_.inner_rank() == 1 && kernel_.row_size() > kBlock; }

  // The phase whose loop stores a node in the row buffer; -1 if the node is recomputed each time.
  int live_since(kernel::NodeIndex i) const { return live_since_[static_cast<size_t>(i)]; }
  bool is_read_back(kernel::NodeIndex i, int phase) const { return live_since(i) >= 0 && live_since(i) < phase; }
  int64_t live_row_size() const;  // number of elements, in whole chunks

  bool has_function(const NodeList& nodes) const;
  // Many live values would spill: expensive bodies run vector by vector, cheap ones interleave all vectors of a chunk.
  bool may_spill(const NodeList& nodes) const;

 private:
  void choose_stores();
  void choose_live_nodes();
  bool is_expensive(const kernel::Node& n) const;
  bool is_made_of_words(const kernel::Node& n) const;
  kernel::NodeIndex live_operand_of_alone(kernel::NodeIndex index) const;
  const kernel::Node& node(kernel::NodeIndex i) const { return kernel_.node(i); }

  const Emission& e_;
  const kernel::Kernel& kernel_;
  const Schedule& schedule_;
  std::vector<int> store_loop_;  // per store of elements: the phase in whose loop it runs
  std::vector<int> live_since_;  // per node
};

}  // namespace lamina::cpu
