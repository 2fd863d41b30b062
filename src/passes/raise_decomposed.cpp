#include "passes/raise_decomposed.h"

#include <algorithm>
#include <map>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/core/graph_editor.h"
#include "passes/patterns/all.h"
#include "passes/patterns/spellings.h"

namespace lamina {
namespace {

using pattern::Decomposition;
using pattern::Match;
using pattern::Outcome;
using pattern::RaisedOp;

bool contains(const std::vector<int>& ops, int op) { return std::binary_search(ops.begin(), ops.end(), op); }

// Whether the schema accepts the op's ports and infers the shapes that they have.
bool fits_schema(const Graph& graph, const Op& op) {
  try {
    const OpView view(graph, op);
    check_op(view);
    for (const auto& [port, shape] : view.schema().infer_shapes(view)) {
      const LogicalTensor* made = view.output(port);
      if (made != nullptr && made->shape != shape) return false;
    }
    return true;
  } catch (const Error& error) {
    // These report a bug of lamina or a lack of memory, not an invalid op.
    if (error.status() == Status::runtime_error || error.status() == Status::out_of_memory) throw;
    return false;
  }
}

class Raiser {
 public:
  Raiser(const Graph& graph, int max_steps)
      : graph_(graph), editor_(graph), max_steps_(max_steps), taken_(graph.ops().size(), false) {}

  // Applies the patterns in order, each from the last op to the first, so that nested matches are taken as a whole.
  std::optional<Graph> run() {
    for (const Decomposition& rule : pattern::decompositions()) {
      for (size_t i = graph_.ops().size(); i-- > 0;)
        if (!taken_[i] && may_start_at(rule.pattern, graph_.ops()[i].kind)) raise_at(rule, static_cast<int>(i));
    }
    if (!changed_) return std::nullopt;
    return editor_.finish();
  }

 private:
  void raise_at(const Decomposition& rule, int root) {
    const auto accept = [&](const Match& found) { return try_raise(rule, found); };
    if (match(graph_, rule.pattern, root, accept, max_steps_) == Outcome::given_up) give_up(rule, root);
  }

  // Records this for `explain`: otherwise it is not visible that the op may match a pattern.
  void give_up(const Decomposition& rule, int root) {
    std::string& pattern = editor_.op(static_cast<size_t>(root)).given_up;
    if (!pattern.empty()) return;
    pattern = rule.pattern.name;
    changed_ = true;
  }

  bool try_raise(const Decomposition& rule, const Match& found) {
    const RaisedOp raised = rule.raise(found);
    for (const auto& [port, value] : raised.inputs)
      if (value == kNoValue) return false;
    const std::vector<int> ops = with_idle_steps(found.ops(), raised);
    if (std::any_of(ops.begin(), ops.end(), [&](int op) { return taken_[static_cast<size_t>(op)]; })) return false;
    for (const auto& [port, value] : raised.inputs)  // for example a gamma that is computed by the matched ops
      if (contains(ops, graph_.value(value).producer.op)) return false;
    const auto statistics = statistics_read_outside(found, raised, ops);
    if (!statistics) return false;
    Op op = make_op(rule, found, raised, *statistics);
    const int place = place_for(op, ops, found.root());
    if (place < 0 || !fits_schema(graph_, op)) return false;
    take(std::move(op), ops, place);
    return true;
  }

  // Adds casts and reshapes above the match that have no other reader, except those that the new op reads.
  std::vector<int> with_idle_steps(std::vector<int> ops, const RaisedOp& raised) const {
    std::vector<int> open = ops;
    while (!open.empty()) {
      const int position = open.back();
      open.pop_back();
      for (const ValueIndex input : op_at(position).inputs) {
        const int producer = input == kNoValue ? -1 : graph_.value(input).producer.op;
        if (producer < 0 || contains(ops, producer) || !pattern::is_cast_or_unit_reshape(graph_, op_at(producer))) continue;
        const bool is_input =
            std::any_of(raised.inputs.begin(), raised.inputs.end(), [&](const auto& named) { return named.second == input; });
        if (is_input || is_read_outside(input, ops)) continue;
        ops.insert(std::upper_bound(ops.begin(), ops.end(), producer), producer);
        open.push_back(producer);
      }
    }
    return ops;
  }

  // Whether an op outside or an End reads the value, or it has no reader.
  bool is_read_outside(ValueIndex value, const std::vector<int>& ops) const {
    const std::vector<Port>& consumers = graph_.value(value).consumers;
    return consumers.empty() || std::any_of(consumers.begin(), consumers.end(), [&](const Port& port) {
             return !contains(ops, port.op) || is_marker(op_at(port.op));
           });
  }

  using Statistics = std::map<std::string, ValueIndex, std::less<>>;

  // Output ports other than dst and their values: all or none. Nothing if another inner value is needed outside.
  std::optional<Statistics> statistics_read_outside(const Match& found, const RaisedOp& raised,
                                                    const std::vector<int>& ops) const {
    Statistics statistics;
    for (const int position : ops) {
      if (position == found.root()) continue;
      for (const ValueIndex value : op_at(position).outputs) {
        if (value == kNoValue || !is_read_outside(value, ops)) continue;
        const auto port = std::find_if(raised.statistics.begin(), raised.statistics.end(), [&](const auto& statistic) {
          const std::vector<ValueIndex> made = found.made(statistic.second);
          return std::find(made.begin(), made.end(), value) != made.end();
        });
        if (port == raised.statistics.end() || !statistics.emplace(port->first, value).second) return std::nullopt;
      }
    }
    if (!statistics.empty() && statistics.size() != raised.statistics.size()) return std::nullopt;
    return statistics;
  }

  Op make_op(const Decomposition& rule, const Match& found, const RaisedOp& raised, const Statistics& statistics) const {
    const Op& root = found.root_op();
    Op op{root.id, raised.kind, root.name, raised.attributes, {}, {}};
    op.raised_by = rule.pattern.name;
    if (!raised.statistics.empty()) op.attributes["keep_stats"] = !statistics.empty();
    fill_defaults(op);
    Ports outputs = statistics;
    outputs["dst"] = root.outputs[0];
    connect_ports(op, Ports(raised.inputs.begin(), raised.inputs.end()), outputs);
    return op;
  }

  // A position for the op after its producers and before its readers; -1 if this order of ops has none.
  int place_for(const Op& op, const std::vector<int>& ops, int root) const {
    int after = -1;
    for (const ValueIndex input : op.inputs)
      if (input != kNoValue) after = std::max(after, graph_.value(input).producer.op);
    const auto place = std::upper_bound(ops.begin(), ops.end(), after);
    LAMINA_CHECK(place != ops.end() && *place <= root, "a raised op reads what is made after it");
    for (const ValueIndex output : op.outputs) {
      if (output == kNoValue) continue;
      for (const Port& consumer : graph_.value(output).consumers)
        if (!contains(ops, consumer.op) && consumer.op < *place) return -1;
    }
    return *place;
  }

  void take(Op op, const std::vector<int>& ops, int place) {
    for (const int position : ops) {
      Op& old = editor_.op(static_cast<size_t>(position));
      taken_[static_cast<size_t>(position)] = true;
      if (old.id != op.id) op.origins.push_back({old.id, old.kind, old.name});
      op.origins.insert(op.origins.end(), old.origins.begin(), old.origins.end());
      if (position != place) editor_.remove(static_cast<size_t>(position));
    }
    editor_.op(static_cast<size_t>(place)) = std::move(op);
    changed_ = true;
  }

  const Op& op_at(int position) const { return graph_.op(position); }

  const Graph& graph_;
  GraphEditor editor_;
  int max_steps_;
  std::vector<bool> taken_;
  bool changed_ = false;
};

}  // namespace

std::optional<Graph> raise_decomposed(const Graph& graph) { return raise_decomposed(graph, pattern::kMaxSteps); }

std::optional<Graph> raise_decomposed(const Graph& graph, int max_steps) { return Raiser(graph, max_steps).run(); }

}  // namespace lamina
