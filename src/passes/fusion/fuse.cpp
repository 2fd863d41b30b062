#include "passes/fusion/fuse.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/fusion/explain_fusion.h"
#include "passes/fusion/group_order.h"
#include "passes/fusion/grow_group.h"
#include "passes/fusion/widening_ops.h"

namespace lamina {
namespace {

constexpr double kGuessedExtent = 1024;  // of an unknown dim, to order anchors by size

enum class Rank { norm, reduction, elementwise, layout, alone };  // the order in which ops become anchors

Rank anchor_rank(const Op& op, const IterationView& view) {
  if (!view.why_not.empty() || view.opaque_copy) return Rank::alone;
  const OpSchema& schema = schema_of(op.kind);
  if (schema.op_class == OpClass::layout) return Rank::layout;
  if (!view.has_inner()) return Rank::elementwise;
  return schema.traits.reduces ? Rank::reduction : Rank::norm;
}

double loop_size(const IterationView& view) {
  double size = 1;
  for (const int64_t extent : view.extents) size *= extent == kUnknownDim ? kGuessedExtent : static_cast<double>(extent);
  return size;
}

struct Grown {
  std::vector<int> ops;
  Dims extents;
  std::vector<bool> inner;
};

// Norms first, then plain reductions, each in the order of the graph. Then elementwise ops from the largest loop nest to the
// smallest, so that a small producer joins its large consumer and not the reverse. Then layout ops, and ops that cannot share
// a nest.
std::vector<int> anchors_in_order(const FusionState& state) {
  struct Anchor {
    Rank rank;
    double size;
    int op;
  };
  std::vector<Anchor> anchors;
  for (size_t i = 0; i < state.graph.ops().size(); ++i) {
    const Op& op = state.graph.ops()[i];
    if (!state.runnable[i] || is_marker(op)) continue;
    const Rank rank = anchor_rank(op, state.views[i]);
    anchors.push_back({rank, rank == Rank::elementwise ? loop_size(state.views[i]) : 0, static_cast<int>(i)});
  }
  std::sort(anchors.begin(), anchors.end(), [](const Anchor& a, const Anchor& b) {
    return std::tuple(a.rank, -a.size, a.op) < std::tuple(b.rank, -b.size, b.op);
  });
  std::vector<int> ops;
  for (const Anchor& anchor : anchors) ops.push_back(anchor.op);
  return ops;
}

Grown grow_one(FusionState& state, int anchor, int id) {
  GroupGrower grower(state, id);
  grower.grow(anchor);
  return {grower.ops(), grower.extents(), grower.inner()};
}

Grown leave_alone(FusionState& state, int op, int id) {
  state.group_of[static_cast<size_t>(op)] = id;
  state.decisions.push_back({ReasonCode::alone_policy_debug, -1, op, kNoValue});
  const IterationView& view = state.views[static_cast<size_t>(op)];
  return {{op}, view.extents, view.inner};
}

// End computes nothing. It joins the op that computes its value; it stays alone if that value is a graph input or its op does
// not run.
void place_markers(FusionState& state, std::vector<Grown>& groups) {
  for (size_t i = 0; i < state.graph.ops().size(); ++i) {
    const Op& op = state.graph.ops()[i];
    if (!state.runnable[i] || !is_marker(op)) continue;
    const int producer = state.graph.value(op.inputs.at(0)).producer.op;
    const int group = producer < 0 ? -1 : state.group_of[static_cast<size_t>(producer)];
    if (group >= 0) {
      groups[static_cast<size_t>(group)].ops.push_back(static_cast<int>(i));
      state.decisions.push_back({ReasonCode::fused_marker, producer, static_cast<int>(i), op.inputs[0]});
    } else {
      groups.push_back({{static_cast<int>(i)}, {}, {}});
      state.decisions.push_back({ReasonCode::alone_no_loop_nest, -1, static_cast<int>(i), kNoValue});
    }
    state.group_of[i] = group >= 0 ? group : static_cast<int>(groups.size()) - 1;
  }
}

FusionGroup finished(const FusionState& state, Grown& grown) {
  FusionGroup group;
  std::sort(grown.ops.begin(), grown.ops.end());
  group.ops = std::move(grown.ops);
  const IterationView& first = state.views[static_cast<size_t>(group.ops.front())];
  group.opaque_copy = first.opaque_copy;
  group.no_loop_nest = first.why_not;
  if (!group.no_loop_nest.empty()) return group;
  group.extents = std::move(grown.extents);
  group.inner = std::move(grown.inner);
  for (const int position : group.ops) {
    const Op& op = state.graph.op(position);
    if (is_marker(op)) continue;
    const IterationView& view = state.views[static_cast<size_t>(position)];
    if (view.has_columns()) group.column_outputs[position] = view.column_outputs;
    for (size_t port = 0; port < op.inputs.size() && !group.opaque_copy; ++port)
      if (op.inputs[port] != kNoValue) group.input_maps[{position, static_cast<int>(port)}] = view.inputs[port];
    for (size_t port = 0; port < op.outputs.size(); ++port)
      if (op.outputs[port] != kNoValue) group.output_maps[{position, static_cast<int>(port)}] = view.outputs[port];
  }
  return group;
}

// The groups in an order in which they can run. Ops that do not run count as groups of one.
std::vector<FusionGroup> finish_in_order(const FusionState& state, std::vector<Grown>& groups) {
  std::vector<int> group_of = state.group_of;
  int count = static_cast<int>(groups.size());
  for (int& group : group_of)
    if (group < 0) group = count++;
  const std::vector<int> order = order_groups(state.graph, group_of, count);
  LAMINA_CHECK(order.size() == static_cast<size_t>(count), "fusion groups depend on each other in a cycle");
  std::vector<FusionGroup> finished_groups;
  for (const int group : order)
    if (static_cast<size_t>(group) < groups.size())
      finished_groups.push_back(finished(state, groups[static_cast<size_t>(group)]));
  return finished_groups;
}

// All groups of a graph.
struct Fused {
  std::unique_ptr<FusionState> state;
  std::vector<Grown> groups;
};

// Grows all groups. If some compute a wider form of a value for other groups, all groups grow once more without that, until
// each of the ops that make such forms is in a group with a reader.
class Fuser {
 public:
  Fuser(const Graph& graph, const std::vector<bool>& runnable, bool fuse_ops, const LibraryCapabilities* library)
      : graph_(graph), runnable_(runnable), fuse_ops_(fuse_ops), library_(library) {}

  Fused run() const {
    Fused first = grown({});
    if (!fuse_ops_) return first;
    std::vector<bool> by_readers = widening_ops_for_other_groups(*first.state);
    for (int times = 0; times < kMostTimes && has_any(by_readers); ++times) {
      Fused again = grown(by_readers);
      std::vector<bool> kept = with_readers(*again.state);
      if (kept == by_readers) return again;
      by_readers = std::move(kept);
    }
    return first;
  }

 private:
  static constexpr int kMostTimes = 3;

  static bool has_any(const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); }

  Fused grown(std::vector<bool> by_readers) const {
    Fused made{std::make_unique<FusionState>(graph_, runnable_, library_, std::move(by_readers)), {}};
    for (const int anchor : anchors_in_order(*made.state)) {
      if (made.state->group_of[static_cast<size_t>(anchor)] >= 0) continue;
      const int id = static_cast<int>(made.groups.size());
      made.groups.push_back(fuse_ops_ ? grow_one(*made.state, anchor, id) : leave_alone(*made.state, anchor, id));
    }
    return made;
  }

  const Graph& graph_;
  const std::vector<bool>& runnable_;
  const bool fuse_ops_;
  const LibraryCapabilities* const library_;
};

}  // namespace

std::vector<FusionGroup> fuse(const Graph& graph, const std::vector<bool>& runnable, bool fuse_ops,
                              const LibraryCapabilities* library) {
  LAMINA_CHECK(runnable.size() == graph.ops().size(), "one flag per op");
  Fused fused = Fuser(graph, runnable, fuse_ops, library).run();
  place_markers(*fused.state, fused.groups);
  std::vector<FusionGroup> groups = finish_in_order(*fused.state, fused.groups);
  explain_fusion(*fused.state, groups);
  return groups;
}

}  // namespace lamina
