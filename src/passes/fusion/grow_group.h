// Grows one fusion group: the rules by which an op may join a loop nest.
//
// An op joins if its iteration dims can be identified with the group's through the values that they share, such that
//   - a value computed inside is read through the map through which it is written (dims may have to be split),
//   - the inner dims of both agree,
//   - values that leave the group vary along every outer dim, or are column outputs: sums over all outer dims, or over all
//     but some, which are the same dims for each of them,
//   - the contracted graph keeps an order.
// A value that does not leave may be recomputed for each pass of the outer dims, which is cheaper than a round trip to
// memory.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "passes/core/reasons.h"
#include "passes/fusion/contracted_graph.h"
#include "passes/fusion/fuse.h"
#include "passes/fusion/iteration_view.h"

namespace lamina {

enum class FloatMode { none, f32, f64, mixed };  // the type in which a loop nest computes an op's floating-point tensors
FloatMode float_mode(const Graph& graph, const Op& op);

// A decision and the pair of ops that it concerns. Sentences are written at the end, when the groups are known.
struct Decision {
  ReasonCode code;
  int group_op;      // -1: there is no group op
  int other_op;      // the op that joined or was refused
  ValueIndex value;  // the value that they share; kNoValue if none
};

// State that all groups of a graph share during growth.
struct FusionState {
  FusionState(const Graph& graph, const std::vector<bool>& runnable, const LibraryCapabilities* library,
              std::vector<bool> computed_by_readers = {});

  const Graph& graph;
  const std::vector<bool>& runnable;
  const std::vector<bool> computed_by_readers;  // per op: it does not join its producer (widening_ops.h); or empty
  ContractedGraph contracted;
  std::vector<IterationView> views;  // per op; in the dims of its group once it is in one
  std::vector<int> group_of;         // per op; -1 before it is in a group
  std::vector<Decision> decisions;

  bool is_computed_by_readers(int op) const;
};

// The loop nest of one group under construction. It grows from `anchor` as far as the rules allow.
class GroupGrower {
 public:
  GroupGrower(FusionState& state, int id) : state_(state), id_(id) {}
  void grow(int anchor);

  const std::vector<int>& ops() const { return ops_; }
  const Dims& extents() const { return extents_; }
  const std::vector<bool>& inner() const { return inner_; }

 private:
  struct Candidate {
    int op;
    int group_op;
    ValueIndex value;
    ReasonCode relation;  // fused_producer, fused_consumer, fused_sibling
  };
  // A value that the op and the group share, with the maps of both.
  struct Link {
    const DimMap* group_map;
    DimMap* op_map;
  };
  // The op's view while it is mapped to the group's dims.
  struct Attempt {
    int op;
    IterationView view;
    std::vector<int> to_group;  // per iteration dim of the op; -1: not identified yet
    std::vector<bool> taken;    // per group dim
  };

  void place(int op, const Candidate* because);
  void push_neighbours(int op);
  void push_siblings(int op, ValueIndex value);
  void try_join(const Candidate& candidate);
  std::optional<ReasonCode> obstacle(Attempt& attempt, const Candidate& candidate);
  std::optional<ReasonCode> obstacle_in_group_dims(Attempt& attempt, int group_op);
  std::optional<ReasonCode> obstacle_of_kind(int op) const;

  std::optional<ReasonCode> collect_links(Attempt& attempt, std::vector<Link>& links);
  std::vector<Link> shared_input_links(Attempt& attempt);
  bool cut_to_common_pieces(Attempt& attempt, const std::vector<Link>& links);
  bool cut_once(Attempt& attempt, const Link& link, bool& fits);
  void cut_group_dim(int dim, const Dims& pieces);
  static void cut_op_dim(Attempt& attempt, int dim, const Dims& pieces);
  bool identify(Attempt& attempt, const Link& link) const;
  void identify_by_position(Attempt& attempt) const;
  bool sums_outer_dims(const Attempt& attempt) const;
  bool keeps_the_same_outer_dims(const Attempt& attempt) const;
  std::vector<bool> kept_outer_dims(const DimMap& map) const;
  std::optional<ReasonCode> settle_inner_dims(Attempt& attempt);
  bool moves_inner_dims(const Attempt& attempt) const;
  bool map_into_group(Attempt& attempt) const;
  bool is_made_again(const Attempt& attempt) const;
  bool outputs_may_leave(const Attempt& attempt) const;
  bool covers_group(const DimMap& map) const;
  bool may_leave(const DimMap& map) const;
  bool leaves(ValueIndex value, int op) const;
  bool is_member(int op) const { return op >= 0 && state_.group_of[static_cast<size_t>(op)] == id_; }
  const Op& op_at(int op) const { return state_.graph.op(op); }
  bool has_inner() const;
  void take_extents(const Attempt& attempt);

  FusionState& state_;
  int id_;
  std::vector<int> ops_;
  Dims extents_;
  std::vector<bool> inner_;
  FloatMode mode_ = FloatMode::none;
  bool has_transpose_ = false;
  int made_again_ = 0;  // ops that are computed more often than their result has elements
  std::deque<Candidate> open_;
  std::unordered_map<ValueIndex, Port> reads_;  // values from outside, and the first operand that reads each
};

}  // namespace lamina
