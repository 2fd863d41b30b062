#include "passes/fusion/explain_fusion.h"

#include <map>
#include <string>
#include <utility>

#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina {
namespace {

class Explainer {
 public:
  Explainer(const FusionState& state, std::vector<FusionGroup>& groups)
      : state_(state),
        groups_(groups),
        group_of_(state.group_of.size(), -1),
        slot_(state.group_of.size(), 0),
        names_(state.group_of.size()),
        value_texts_(state.graph.values().size()) {
    for (size_t g = 0; g < groups.size(); ++g) {
      groups[g].reasons.assign(groups[g].ops.size(), {});
      for (size_t i = 0; i < groups[g].ops.size(); ++i) {
        group_of_[at(groups[g].ops[i])] = static_cast<int>(g);
        slot_[at(groups[g].ops[i])] = i;
      }
    }
  }

  void run() {
    std::map<std::pair<int, int>, Decision> refusals;
    for (const Decision& decision : state_.decisions) {
      if (decision.group_op < 0 || joins(decision.code))
        add_own(decision);
      else
        refusals.insert_or_assign({decision.group_op, decision.other_op}, decision);
    }
    for (const auto& [pair, decision] : refusals) {
      if (group_of_[at(pair.first)] >= 0 && group_of_[at(pair.first)] == group_of_[at(pair.second)]) continue;
      const std::string why = rule(decision);
      add(pair.first, decision.code, "not fused with " + name(pair.second) + ": " + why, pair.second);
      add(pair.second, decision.code, "not fused with " + name(pair.first) + ": " + why, pair.first);
    }
  }

 private:
  static size_t at(int index) { return static_cast<size_t>(index); }
  static bool joins(ReasonCode code) { return code <= ReasonCode::fused_marker; }

  // Texts are cached per op and value: a graph of ten thousand ops has as many sentences, and most contain the same names.
  const std::string& name(int op) const {
    std::string& text = names_[at(op)];
    if (text.empty()) text = describe(state_.graph.ops()[at(op)]);
    return text;
  }
  const std::string& value_text(ValueIndex value) const {
    static const std::string none;
    if (value == kNoValue) return none;
    std::string& text = value_texts_[at(value)];
    const LogicalTensor& tensor = state_.graph.tensor(value);
    if (text.empty()) text = "value " + std::to_string(tensor.id) + " (" + describe(tensor) + ")";
    return text;
  }
  std::string nest(int op) const {
    const int group = group_of_[at(op)];
    return group < 0 ? "nothing" : describe(groups_[at(group)].extents);
  }

  void add(int op, ReasonCode code, std::string text, int other) {
    if (group_of_[at(op)] < 0) return;  // The backend does not run this op, and its partition has that reason.
    groups_[at(group_of_[at(op)])].reasons[slot_[at(op)]].push_back(make_reason(code, std::move(text), other));
  }

  void add_own(const Decision& decision) { add(decision.other_op, decision.code, own_text(decision), decision.group_op); }

  std::string own_text(const Decision& decision) const {
    const int op = decision.other_op;
    switch (decision.code) {
      case ReasonCode::anchor: return "the group started with " + name(op) + ", its loop nest runs over " + nest(op);
      case ReasonCode::fused_producer:
        return "fused with " + name(decision.group_op) + ": produces its input " + value_text(decision.value);
      case ReasonCode::fused_consumer:
        return "fused with " + name(decision.group_op) + ": reads its output " + value_text(decision.value);
      case ReasonCode::fused_sibling:
        return "fused with " + name(decision.group_op) + ": both read " + value_text(decision.value);
      case ReasonCode::fused_marker: return "End is with " + name(decision.group_op) + ", which produces its value";
      case ReasonCode::alone_library_op:
        return name(op) + " is a library op that runs over whole tensors, no op is fused with it";
      case ReasonCode::alone_policy_debug:
        return name(op) + " is alone because policy debug puts every op in its own partition";
      case ReasonCode::alone_layout: return name(op) + " is a copy: its shapes have no common dims to loop over";
      case ReasonCode::alone_mixed_f64:
        return name(op) + " mixes f64 with other floating-point types, but a loop nest computes in one";
      default: return name(op) + " is alone: " + state_.views[at(op)].why_not;
    }
  }

  std::string rule(const Decision& decision) const {
    const std::string& shared = value_text(decision.value);
    switch (decision.code) {
      case ReasonCode::alone_shape_mismatch:
        return shared + " does not map its dims to the loop nest over " + nest(decision.group_op);
      case ReasonCode::alone_inner_axes_differ:
        return "it normalises or reduces other axes of " + shared + " than the loop nest over " + nest(decision.group_op);
      case ReasonCode::alone_would_cycle: return "an op outside is on a path between the two other than " + shared;
      case ReasonCode::alone_search_limit:
        return join("more than ", ContractedGraph::kSearchLimit, " ops are between the two ends of ", shared);
      case ReasonCode::alone_partial_output:
        return "its result is needed outside and does not vary along every outer dim of the loop nest over " +
               nest(decision.group_op);
      case ReasonCode::alone_recompute_limit:
        return "the loop nest over " + nest(decision.group_op) + " would recompute " + shared +
               " for each step of an outer dim";
      case ReasonCode::alone_layout:
        return "the op that moves elements of " + shared + " would make the loop nest over " + nest(decision.group_op) +
               " access other rows";
      case ReasonCode::alone_column_result:
        return shared + " is a sum over all rows, complete only when the loop nest has ended";
      case ReasonCode::alone_wider:
        return "only another loop nest reads the wider result of " + name(decision.other_op) + ", so " + shared +
               " is in memory as it is";
      case ReasonCode::alone_part: return "only a part of " + shared + " is read, so all of it must be in memory first";
      case ReasonCode::alone_mixed_f64: return shared + " would mix f64 with another floating-point type in one loop nest";
      case ReasonCode::alone_unsupported: return "the backend does not run " + name(decision.other_op);
      case ReasonCode::alone_library_op: return name(decision.other_op) + " is a library op that runs over whole tensors";
      default: return name(decision.other_op) + " has no loop nest, " + state_.views[at(decision.other_op)].why_not;
    }
  }

  const FusionState& state_;
  std::vector<FusionGroup>& groups_;
  std::vector<int> group_of_;  // position among `groups_`
  std::vector<size_t> slot_;   // position of the op in its group
  mutable std::vector<std::string> names_, value_texts_;
};

}  // namespace

void explain_fusion(const FusionState& state, std::vector<FusionGroup>& groups) { Explainer(state, groups).run(); }

}  // namespace lamina
