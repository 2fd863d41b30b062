#include "passes/fusion/grow_group.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/fusion/column_anchor.h"
#include "passes/fusion/common_refinement.h"
#include "passes/fusion/cut_dims.h"

namespace lamina {
namespace {

// A tensor with more readers is not searched for siblings: it is a mask or a scalar, which stays in the cache.
constexpr size_t kMaxSiblings = 8;

// The number of ops in a group that may be recomputed for each step along an outer dim.
constexpr int kMaxMadeAgain = 8;

size_t at(int index) { return static_cast<size_t>(index); }

bool was_cut(const std::vector<int>& pieces) {
  return std::any_of(pieces.begin(), pieces.end(), [](int count) { return count != 1; });
}

Dims extents_of(const AxisRun& run, const Dims& extents) {
  return {extents.begin() + run.first, extents.begin() + run.first + run.count};
}

bool transposes(const Op& op) { return schema_of(op.kind).nest == LoopNest::transposed; }

std::vector<int> dims_in_order(const DimMap& map) {
  std::vector<int> dims;
  for (const AxisRun& run : map)
    for (int dim = run.first; dim < run.first + run.count; ++dim) dims.push_back(dim);
  return dims;
}

}  // namespace

FloatMode float_mode(const Graph& graph, const Op& op) {
  bool has_f64 = false, has_other = false;
  for (const auto* ports : {&op.inputs, &op.outputs}) {
    for (const ValueIndex value : *ports) {
      if (value == kNoValue || !is_floating(graph.tensor(value).dtype)) continue;
      (graph.tensor(value).dtype == DataType::f64 ? has_f64 : has_other) = true;
    }
  }
  if (has_f64 && has_other) return FloatMode::mixed;
  return has_f64 ? FloatMode::f64 : has_other ? FloatMode::f32 : FloatMode::none;
}

FusionState::FusionState(const Graph& the_graph, const std::vector<bool>& which_run, const LibraryCapabilities* library,
                         std::vector<bool> by_readers)
    : graph(the_graph),
      runnable(which_run),
      computed_by_readers(std::move(by_readers)),
      contracted(the_graph),
      group_of(the_graph.ops().size(), -1) {
  views.reserve(graph.ops().size());
  for (const Op& op : graph.ops()) {
    views.push_back(iteration_view(graph, op));
    if (library != nullptr && library->is_faster(graph, op)) views.back().why_not = "the library is faster than a kernel";
  }
}

bool FusionState::is_computed_by_readers(int op) const { return !computed_by_readers.empty() && computed_by_readers[at(op)]; }

// ---- growing

void GroupGrower::grow(int anchor) {
  IterationView& view = state_.views[at(anchor)];
  if (auto columns = inner_dims_below_sum(state_, anchor)) {
    view.inner = std::move(*columns);
    view.column_outputs.assign(1, true);
  }
  extents_ = view.extents;
  inner_ = view.inner;
  place(anchor, nullptr);
  const bool joins_others = view.why_not.empty() && !view.opaque_copy && mode_ != FloatMode::mixed;
  state_.decisions.push_back({joins_others ? ReasonCode::anchor : *obstacle_of_kind(anchor), -1, anchor, kNoValue});
  if (joins_others) push_neighbours(anchor);
  while (!open_.empty()) {
    const Candidate candidate = open_.front();
    open_.pop_front();
    try_join(candidate);
  }
}

void GroupGrower::place(int op, const Candidate* because) {
  state_.group_of[at(op)] = id_;
  ops_.push_back(op);
  has_transpose_ = has_transpose_ || transposes(op_at(op));
  const FloatMode mode = float_mode(state_.graph, op_at(op));
  if (mode != FloatMode::none) mode_ = mode;
  for (size_t port = 0; port < op_at(op).inputs.size(); ++port)
    if (op_at(op).inputs[port] != kNoValue) reads_.try_emplace(op_at(op).inputs[port], Port{op, static_cast<int>(port)});
  if (because != nullptr) state_.decisions.push_back({because->relation, because->group_op, op, because->value});
}

void GroupGrower::push_neighbours(int op) {
  for (const ValueIndex value : op_at(op).outputs) {
    if (value == kNoValue) continue;
    for (const Port& consumer : state_.graph.value(value).consumers)
      open_.push_back({consumer.op, op, value, ReasonCode::fused_consumer});
  }
  for (const ValueIndex value : op_at(op).inputs) {
    if (value == kNoValue) continue;
    const int producer = state_.graph.value(value).producer.op;
    if (producer >= 0 && !state_.is_computed_by_readers(op)) open_.push_back({producer, op, value, ReasonCode::fused_producer});
    if (!is_member(producer)) push_siblings(op, value);
  }
}

void GroupGrower::push_siblings(int op, ValueIndex value) {
  const std::vector<Port>& consumers = state_.graph.value(value).consumers;
  if (consumers.size() > kMaxSiblings) return;
  for (const Port& consumer : consumers) open_.push_back({consumer.op, op, value, ReasonCode::fused_sibling});
}

void GroupGrower::try_join(const Candidate& candidate) {
  if (state_.group_of[at(candidate.op)] >= 0 || is_marker(op_at(candidate.op))) return;
  std::optional<ReasonCode> refused = obstacle_of_kind(candidate.op);
  const bool is_reader = candidate.relation == ReasonCode::fused_consumer;
  if (!refused && is_reader && state_.is_computed_by_readers(candidate.op)) refused = ReasonCode::alone_wider;
  if (!refused) {
    Attempt attempt{candidate.op, state_.views[at(candidate.op)], {}, {}};
    refused = obstacle(attempt, candidate);
    if (!refused) {
      take_extents(attempt);
      state_.views[at(candidate.op)] = std::move(attempt.view);
      place(candidate.op, &candidate);
      push_neighbours(candidate.op);
      return;
    }
  }
  if (candidate.relation != ReasonCode::fused_sibling)
    state_.decisions.push_back({*refused, candidate.group_op, candidate.op, candidate.value});
}

// ---- rules

// The reason why an op cannot be in any group with others.
std::optional<ReasonCode> GroupGrower::obstacle_of_kind(int op) const {
  if (!state_.runnable[at(op)]) return ReasonCode::alone_unsupported;
  const IterationView& view = state_.views[at(op)];
  if (!view.why_not.empty()) {
    const bool library = schema_of(op_at(op).kind).op_class == OpClass::library;
    return library ? ReasonCode::alone_library_op : ReasonCode::alone_no_loop_nest;
  }
  if (view.opaque_copy) return ReasonCode::alone_layout;
  const FloatMode mode = float_mode(state_.graph, op_at(op));
  const bool differs = mode != FloatMode::none && mode_ != FloatMode::none && mode != mode_;
  if (mode == FloatMode::mixed || differs) return ReasonCode::alone_mixed_f64;
  return std::nullopt;
}

// Maps the attempt's view to the group's dims, or returns the rule that refuses. The cheap rules come first. The search for
// cycles is the last, because it merges the nodes if it succeeds.
std::optional<ReasonCode> GroupGrower::obstacle(Attempt& attempt, const Candidate& candidate) {
  std::vector<Link> links;
  if (const auto refused = collect_links(attempt, links)) return refused;
  const bool sibling = candidate.relation == ReasonCode::fused_sibling && links.empty();
  std::vector<Link> hints = shared_input_links(attempt);
  if (sibling) {
    std::erase_if(hints, [&](const Link& link) { return !covers_group(*link.group_map); });
    links = std::move(hints);
  }
  if (links.empty() || !cut_to_common_pieces(attempt, links)) return ReasonCode::alone_shape_mismatch;
  attempt.to_group.assign(attempt.view.extents.size(), -1);
  attempt.taken.assign(extents_.size(), false);
  for (const Link& link : links)
    if (!identify(attempt, link)) return ReasonCode::alone_shape_mismatch;
  if (!sibling) {
    for (const Link& hint : hints) {
      const auto before = std::pair(attempt.to_group, attempt.taken);
      if (!identify(attempt, hint)) std::tie(attempt.to_group, attempt.taken) = before;
    }
    identify_by_position(attempt);
  }
  if (sums_outer_dims(attempt)) {
    attempt.view.inner.assign(attempt.view.inner.size(), false);
    attempt.view.column_outputs.assign(1, true);
  }
  const Dims extents_before = extents_;
  const std::vector<bool> inner_before = inner_;
  auto refused = settle_inner_dims(attempt);
  if (!refused) refused = obstacle_in_group_dims(attempt, candidate.group_op);
  if (refused) {
    extents_ = extents_before;
    inner_ = inner_before;
  }
  return refused;
}

// The rules about the group's dims, after those of the op are identified with them.
std::optional<ReasonCode> GroupGrower::obstacle_in_group_dims(Attempt& attempt, int group_op) {
  if (std::find(attempt.to_group.begin(), attempt.to_group.end(), -1) != attempt.to_group.end())
    return ReasonCode::alone_shape_mismatch;
  if (!map_into_group(attempt) || moves_inner_dims(attempt)) return ReasonCode::alone_layout;
  if (!keeps_the_same_outer_dims(attempt)) return ReasonCode::alone_inner_axes_differ;
  if (!outputs_may_leave(attempt)) return ReasonCode::alone_partial_output;
  const bool again = is_made_again(attempt);
  if (again && made_again_ >= kMaxMadeAgain) return ReasonCode::alone_recompute_limit;
  switch (state_.contracted.merge(group_op, attempt.op)) {
    case ContractedGraph::Verdict::would_cycle: return ReasonCode::alone_would_cycle;
    case ContractedGraph::Verdict::too_far: return ReasonCode::alone_search_limit;
    case ContractedGraph::Verdict::merged: break;
  }
  if (again) ++made_again_;
  return std::nullopt;
}

// Values that one side computes and the other reads.
std::optional<ReasonCode> GroupGrower::collect_links(Attempt& attempt, std::vector<Link>& links) {
  const Op& op = op_at(attempt.op);
  for (size_t port = 0; port < op.inputs.size(); ++port) {
    if (op.inputs[port] == kNoValue) continue;
    const Port producer = state_.graph.value(op.inputs[port]).producer;
    if (!is_member(producer.op)) continue;
    if (attempt.view.reads_a_part[port]) return ReasonCode::alone_part;
    const IterationView& view = state_.views[at(producer.op)];
    if (view.column_outputs[at(producer.port)]) return ReasonCode::alone_column_result;
    links.push_back({&view.outputs[at(producer.port)], &attempt.view.inputs[port]});
  }
  for (size_t port = 0; port < op.outputs.size(); ++port) {
    if (op.outputs[port] == kNoValue) continue;
    for (const Port& consumer : state_.graph.value(op.outputs[port]).consumers) {
      if (!is_member(consumer.op)) continue;
      if (attempt.view.column_outputs[port]) return ReasonCode::alone_column_result;
      const IterationView& view = state_.views[at(consumer.op)];
      if (view.reads_a_part[at(consumer.port)]) return ReasonCode::alone_part;
      if (view.why_not.empty()) links.push_back({&view.inputs[at(consumer.port)], &attempt.view.outputs[port]});
    }
  }
  return std::nullopt;
}

// Values from outside that both read. They are no constraint, and only suggest which dims correspond.
std::vector<GroupGrower::Link> GroupGrower::shared_input_links(Attempt& attempt) {
  std::vector<Link> links;
  const Op& op = op_at(attempt.op);
  for (size_t port = 0; port < op.inputs.size(); ++port) {
    const auto reader = reads_.find(op.inputs[port]);
    if (reader == reads_.end() || is_member(state_.graph.value(op.inputs[port]).producer.op)) continue;
    links.push_back({&state_.views[at(reader->second.op)].inputs[at(reader->second.port)], &attempt.view.inputs[port]});
  }
  return links;
}

// ---- cutting dims into common pieces

bool GroupGrower::cut_to_common_pieces(Attempt& attempt, const std::vector<Link>& links) {
  bool fits = true;
  for (const Link& link : links) {
    if (link.group_map->size() != link.op_map->size()) return false;
    while (fits && cut_once(attempt, link, fits)) {
    }
  }
  return fits;
}

// Splits one dim that is whole on one side and in pieces on the other. Returns false if there is nothing to split. Sets
// `fits` to false if the pieces have no common refinement.
bool GroupGrower::cut_once(Attempt& attempt, const Link& link, bool& fits) {
  for (size_t i = 0; i < link.op_map->size(); ++i) {
    const AxisRun group_run = (*link.group_map)[i], op_run = (*link.op_map)[i];
    if (group_run.count == 1 && op_run.count == 1) continue;
    const auto refined = common_refinement(extents_of(group_run, extents_), extents_of(op_run, attempt.view.extents));
    if (!refined) {
      fits = false;
      return false;
    }
    const bool cut_group = was_cut(refined->a);
    if (!cut_group && !was_cut(refined->b)) continue;
    const std::vector<int>& counts = cut_group ? refined->a : refined->b;
    const auto which = std::find_if(counts.begin(), counts.end(), [](int count) { return count != 1; }) - counts.begin();
    const Dims pieces(refined->pieces.begin() + which, refined->pieces.begin() + which + counts[static_cast<size_t>(which)]);
    if (cut_group)
      cut_group_dim(group_run.first + static_cast<int>(which), pieces);
    else
      cut_op_dim(attempt, op_run.first + static_cast<int>(which), pieces);
    return true;
  }
  return false;
}

void GroupGrower::cut_group_dim(int dim, const Dims& pieces) {
  cut_in_extents(extents_, inner_, dim, pieces);
  for (const int op : ops_) cut_in_view(state_.views[at(op)], dim, static_cast<int>(pieces.size()));
}

void GroupGrower::cut_op_dim(Attempt& attempt, int dim, const Dims& pieces) {
  cut_in_extents(attempt.view.extents, attempt.view.inner, dim, pieces);
  cut_in_view(attempt.view, dim, static_cast<int>(pieces.size()));
}

// ---- identifying dims

bool GroupGrower::identify(Attempt& attempt, const Link& link) const {
  if (link.group_map->size() != link.op_map->size()) return false;
  for (size_t i = 0; i < link.op_map->size(); ++i) {
    const AxisRun group_run = (*link.group_map)[i], op_run = (*link.op_map)[i];
    if (group_run.count != op_run.count) return false;
    for (int k = 0; k < op_run.count; ++k) {
      const int group_dim = group_run.first + k, op_dim = op_run.first + k;
      if (!dims_agree(extents_[at(group_dim)], attempt.view.extents[at(op_dim)])) return false;
      int& known = attempt.to_group[at(op_dim)];
      if (known == group_dim) continue;
      if (known >= 0 || attempt.taken[at(group_dim)]) return false;
      known = group_dim;
      attempt.taken[at(group_dim)] = true;
    }
  }
  return true;
}

// For dims of the op that no shared value has (mean [4, 1] times y [4, 8]): the next free dim of the group with that extent.
void GroupGrower::identify_by_position(Attempt& attempt) const {
  size_t next = 0;
  for (size_t dim = 0; dim < attempt.to_group.size(); ++dim) {
    const int64_t extent = attempt.view.extents[dim];
    if (attempt.to_group[dim] >= 0 || extent == 1 || extent == kUnknownDim) continue;
    while (next < extents_.size() && (attempt.taken[next] || extents_[next] != extent)) ++next;
    if (next == extents_.size()) return;
    attempt.to_group[dim] = static_cast<int>(next);
    attempt.taken[next] = true;
  }
}

// ---- inner dims and layout

bool GroupGrower::has_inner() const { return std::find(inner_.begin(), inner_.end(), true) != inner_.end(); }

// Whether the op is a plain sum over outer dims of a group that reduces other dims: a column output, whose readers are outside.
bool GroupGrower::sums_outer_dims(const Attempt& attempt) const {
  const Op& op = op_at(attempt.op);
  const IterationView& view = attempt.view;
  if (!schema_of(op.kind).traits.only_sums || !has_inner() || !is_floating(state_.graph.tensor(op.outputs[0]).dtype))
    return false;
  for (const Port& reader : state_.graph.value(op.outputs[0]).consumers)
    if (is_member(reader.op)) return false;
  bool sums_any = false;
  for (size_t dim = 0; dim < view.extents.size(); ++dim) {
    if (!view.inner[dim] || view.extents[dim] == 1) continue;
    const int group_dim = attempt.to_group[dim];
    if (group_dim < 0 || inner_[at(group_dim)]) return false;
    sums_any = true;
  }
  return sums_any;
}

std::vector<bool> GroupGrower::kept_outer_dims(const DimMap& map) const {
  std::vector<bool> kept(extents_.size(), false);
  for (const int dim : dims_in_order(map)) kept[at(dim)] = !inner_[at(dim)];
  return kept;
}

// Column sums of a kernel are over all rows, or over those of an entry. The outer dims that one of them keeps are the entries.
bool GroupGrower::keeps_the_same_outer_dims(const Attempt& attempt) const {
  if (!schema_of(op_at(attempt.op).kind).traits.only_sums || !attempt.view.has_columns()) return true;
  const std::vector<bool> none(extents_.size(), false), kept = kept_outer_dims(attempt.view.outputs[0]);
  for (const int member : ops_) {
    const IterationView& view = state_.views[at(member)];
    for (size_t port = 0; port < view.outputs.size() && kept != none; ++port) {
      if (!view.column_outputs[port]) continue;
      const std::vector<bool> others = kept_outer_dims(view.outputs[port]);
      if (others != none && others != kept) return false;
    }
  }
  return true;
}

// An op that reduces must reduce the same dims as the group. A group that does not reduce takes the op's inner dims.
std::optional<ReasonCode> GroupGrower::settle_inner_dims(Attempt& attempt) {
  const IterationView& view = attempt.view;
  if (!view.has_inner()) return std::nullopt;
  const bool adopts = !has_inner();
  if (adopts && has_transpose_) return ReasonCode::alone_layout;
  std::vector<bool> wanted(extents_.size(), false);
  for (size_t dim = 0; dim < view.extents.size(); ++dim) {
    if (!view.inner[dim]) continue;
    int& group_dim = attempt.to_group[dim];
    if (group_dim < 0 && view.extents[dim] == 1) {  // the inner dim of an op that only reduces extents of 1
      for (size_t g = 0; g < extents_.size(); ++g)
        if (extents_[g] == 1 && inner_[g]) group_dim = static_cast<int>(g);
      if (group_dim < 0 && adopts) {
        group_dim = static_cast<int>(extents_.size());
        extents_.push_back(1);
        inner_.push_back(false);
        attempt.taken.push_back(true);
        wanted.push_back(false);
      }
      if (group_dim < 0) return ReasonCode::alone_inner_axes_differ;
    }
    if (group_dim < 0) return ReasonCode::alone_shape_mismatch;
    wanted[at(group_dim)] = true;
  }
  if (!adopts && wanted != inner_) return ReasonCode::alone_inner_axes_differ;
  inner_ = wanted;
  return std::nullopt;
}

// False if dims that the op traverses as one are not adjacent in the group.
bool GroupGrower::map_into_group(Attempt& attempt) const {
  for (auto* maps : {&attempt.view.inputs, &attempt.view.outputs}) {
    for (DimMap& map : *maps) {
      for (AxisRun& run : map) {
        if (run.count == 0) continue;
        const int first = attempt.to_group[at(run.first)];
        for (int k = 1; k < run.count; ++k)
          if (attempt.to_group[at(run.first + k)] != first + k) return false;
        run.first = first;
      }
    }
  }
  return true;
}

// A transpose may reorder outer dims. Inner dims must stay innermost and in order, else rows would be strided.
bool GroupGrower::moves_inner_dims(const Attempt& attempt) const {
  if (!transposes(op_at(attempt.op)) || !has_inner()) return false;
  const auto inner_tail = [&](const DimMap& map) {
    std::vector<int> dims = dims_in_order(map), tail;
    while (!dims.empty() && inner_[at(dims.back())]) {
      tail.push_back(dims.back());
      dims.pop_back();
    }
    const bool inner_is_left = std::any_of(dims.begin(), dims.end(), [&](int dim) { return inner_[at(dim)]; });
    return std::make_pair(tail, inner_is_left);
  };
  const auto src = inner_tail(attempt.view.inputs[0]), dst = inner_tail(attempt.view.outputs[0]);
  return src != dst || src.second;
}

// ---- values that leave

bool GroupGrower::leaves(ValueIndex value, int op) const {
  const std::vector<Port>& consumers = state_.graph.value(value).consumers;
  return consumers.empty() || std::any_of(consumers.begin(), consumers.end(),
                                          [&](const Port& port) { return port.op != op && !is_member(port.op); });
}

bool GroupGrower::covers_group(const DimMap& map) const {
  const std::vector<int> dims = dims_in_order(map);
  const auto in_extents = std::count_if(extents_.begin(), extents_.end(), [](int64_t extent) { return extent != 1; });
  return dims.size() == static_cast<size_t>(in_extents);
}

// Whether the map has every outer dim, and either all inner dims (an element) or none (a value per row).
bool GroupGrower::may_leave(const DimMap& map) const {
  std::vector<bool> covered(extents_.size(), false);
  for (const int dim : dims_in_order(map)) covered[at(dim)] = true;
  bool all_inner = true, no_inner = true;
  for (size_t dim = 0; dim < extents_.size(); ++dim) {
    if (extents_[dim] == 1) continue;
    if (!inner_[dim] && !covered[dim]) return false;
    if (inner_[dim]) (covered[dim] ? no_inner : all_inner) = false;
  }
  return all_inner || no_inner;
}

bool GroupGrower::outputs_may_leave(const Attempt& attempt) const {
  const Op& op = op_at(attempt.op);
  // Sums over rows must see each row once. An op that reads only a shape must not keep a reduction over the other dims.
  if (attempt.view.has_columns() || schema_of(op.kind).traits.shape_only) {
    for (size_t dim = 0; dim < extents_.size(); ++dim)
      if (extents_[dim] != 1 && !attempt.taken[dim]) return false;
  }
  for (size_t port = 0; port < op.outputs.size(); ++port) {
    if (op.outputs[port] == kNoValue || attempt.view.column_outputs[port] || !leaves(op.outputs[port], attempt.op)) continue;
    if (!may_leave(attempt.view.outputs[port])) return false;
  }
  return true;
}

// An op that lacks an outer dim of the nest is recomputed for each step along it.
bool GroupGrower::is_made_again(const Attempt& attempt) const {
  for (size_t dim = 0; dim < extents_.size(); ++dim)
    if (extents_[dim] != 1 && !inner_[dim] && !attempt.taken[dim]) return true;
  return false;
}

void GroupGrower::take_extents(const Attempt& attempt) {
  for (size_t dim = 0; dim < attempt.view.extents.size(); ++dim) {
    int64_t& extent = extents_[at(attempt.to_group[dim])];
    if (extent == kUnknownDim) extent = attempt.view.extents[dim];
  }
}

}  // namespace lamina
