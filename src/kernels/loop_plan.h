// The loops of a kernel: which nodes each walk over a row computes and for which roots, and which values stay live between the
// walks. A plan is computed once per kernel and schedule. The interpreter, the emitters of all backends and the cost model read
// it.
//
// The kernel gives each node a phase. A device's LoopPolicy decides the rest: what it keeps between phases and what it computes
// again, and where stores run. None of this changes bits, except `moments_by_block`, which is part of the order of summation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel_ir.h"

namespace lamina::kernel {

using NodeList = std::vector<NodeIndex>;

struct LoopPolicy {
  // Both walks for mean and variance run over each block of the row, in one phase. Else the second walk is the next phase's.
  bool moments_by_block = false;
  // Where a store of elements runs if the last phase has its value too: as soon as the value is known; in the last phase, if
  // the value needs a function that no reduction computes earlier; always in the last phase.
  enum class Stores { early, late_functions, late } stores = Stores::early;
  // The memory or registers that a node takes if it stays live between phases, and how much of it there is, in one unit. 0:
  // the node is loaded or computed again in each phase.
  std::function<int64_t(const Node& node, CostClass cost)> live_size = nullptr;
  int64_t live_space = 0;
  bool keeps_loads_first = false;  // else the order of the nodes decides
  bool keeps_users = false;        // keeps a value instead of the live value that only it reads
};

// Whether both walks for mean and variance run block by block in the order of summation of kernels/numerics.h.
bool moments_by_block(const Kernel& kernel);

// Per node: what it costs to compute it once its operands are known. The values computed from random words, up to the first
// float, cost as much as the words: devices keep floats only.
std::vector<CostClass> cost_classes(const Kernel& kernel);

class LoopPlan {
 public:
  // The kernel must outlive the plan.
  explicit LoopPlan(const Kernel& kernel, const LoopPolicy& policy = {});

  int count() const { return kernel_.phase_count(); }
  int last() const { return count() - 1; }
  // A phase's roots: the reductions, stores of elements and column sums that its walk completes, and moments in their second
  // walk.
  const NodeList& roots(int phase) const { return phases_[static_cast<size_t>(phase)].roots; }
  // The element nodes that its walk computes for these or reads back, operands before users.
  const NodeList& nodes(int phase) const { return phases_[static_cast<size_t>(phase)].nodes; }
  NodeList nodes_for(const NodeList& roots, int phase) const;          // the same for some of the roots
  int loop_of(NodeIndex root) const { return loop_[index(root)]; }     // the phase of a root; of moments: of the first walk
  int live_since(NodeIndex i) const { return live_since_[index(i)]; }  // the phase that stores a live value; else -1
  bool is_read_back(NodeIndex i, int phase) const { return live_since(i) >= 0 && live_since(i) < phase; }
  CostClass cost(NodeIndex i) const { return cost_[index(i)]; }
  bool moments_by_block() const { return moments_by_block_; }

  // Whether only second walks for mean and variance run in this phase; they are needed rarely.
  bool may_be_skipped(int phase) const;
  std::vector<int> usual_walks() const;  // the phases with a walk that every row has
  bool reduces(int phase) const;         // whether a reduction is among the roots
  bool has_function(const NodeList& nodes) const;

  const Kernel& kernel() const { return kernel_; }

 private:
  struct Phase {
    NodeList roots, nodes;
  };
  static size_t index(NodeIndex i) { return static_cast<size_t>(i); }
  const Node& node(NodeIndex i) const { return kernel_.node(i); }
  void list_phases();
  NodeList roots_of(int phase) const;
  void delay_stores(LoopPolicy::Stores stores);
  void choose_live_nodes(const LoopPolicy& policy);
  NodeIndex live_operand_of_alone(NodeIndex index) const;

  const Kernel& kernel_;
  const bool moments_by_block_;
  std::vector<CostClass> cost_;
  std::vector<int> loop_, live_since_;
  std::vector<Phase> phases_;
};

// A few lines per phase, for people: `lamina explain --kernels` prints them below the kernel.
std::string print(const LoopPlan& plan);

}  // namespace lamina::kernel
