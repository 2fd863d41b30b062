#include "passes/core/pattern.h"

#include <algorithm>
#include <cmath>

#include "interface/data_type.h"
#include "interface/status.h"

namespace lamina::pattern {
namespace {

constexpr size_t kKinds = 1024;  // larger than any enumerator of OpKind
constexpr double kSixDigits = 1e-6;
constexpr double kRoundings = 1e-15;  // what the last bits of a number in f64 may differ
constexpr size_t kMaxRepeated = 64;   // number of values that one repetition visits

using Kinds = std::bitset<kKinds>;

size_t index_of(OpKind kind) {
  const auto index = static_cast<size_t>(kind);
  LAMINA_CHECK(index < kKinds, "pattern: an op kind beyond the sets of kinds");
  return index;
}

Kinds kinds_of(OpClass op_class) {
  Kinds kinds;
  for (const OpKind kind : all_op_kinds())
    if (schema_of(kind).op_class == op_class) kinds.set(index_of(kind));
  return kinds;
}

}  // namespace

struct TermNode {
  enum class Form { value, number, op, absent, either, many };
  Form form = Form::value;
  std::string name = {};
  double number = 0;  // for a number without a name
  OpClass repeated = OpClass::elementwise;
  Kinds heads = {};                 // kinds of ops that can compute the value
  bool any_head = false;            // a value or number with any producer
  std::vector<Term> children = {};  // inputs, alternatives, or the term below the repeated ops
  std::function<bool(const Op&)> attributes = nullptr;
};

namespace {

using Form = TermNode::Form;

Term make(TermNode node) { return Term(std::make_shared<const TermNode>(std::move(node))); }

void take_heads(TermNode& node, const TermNode& child) {
  node.heads |= child.heads;
  node.any_head = node.any_head || child.any_head;
}

// A reference to a callable, which must outlive it.
class Next {
 public:
  template <typename Function>
  Next(const Function& function)  // NOLINT: implicit, so that a lambda can be passed directly
      : object_(&function), call_([](const void* object) { return (*static_cast<const Function*>(object))(); }) {}
  bool operator()() const { return call_(object_); }

 private:
  const void* object_;
  bool (*call_)(const void*);
};

bool widens(DataType from, DataType to) {
  if (from == to) return true;
  if (to == DataType::f64) return is_floating(from);
  return to == DataType::f32 && is_floating(from) && from != DataType::f64;
}

bool holds(const Graph& graph, ValueIndex constant, double expected) {
  const double held = *graph.value(constant).constant;
  const DataType dtype = graph.tensor(constant).dtype;
  const double tolerance = dtype == DataType::f64 ? kRoundings : kSixDigits;
  return held == round_to(dtype, expected) || std::fabs(held - expected) <= tolerance * std::fabs(expected);
}

// The search, in continuation-passing style: every alternative of one term is tried with every alternative of the others. Its
// depth depends on the size of the pattern, not on that of the graph.
class Search {
 public:
  using Entry = Match::Entry;

  Search(const Graph& graph, const Pattern& pattern, int root, const std::function<bool(const Match&)>& accept, int max_steps)
      : graph_(graph), pattern_(pattern), root_(root), accept_(accept), max_steps_(max_steps) {}

  Outcome run() {
    if (match_root(pattern_.body.node(), [this] { return accepted(); })) return Outcome::matched;
    return steps_ > max_steps_ ? Outcome::given_up : Outcome::none;
  }

 private:
  bool accepted() const {
    const Match found(graph_, root_, entries_);
    return (!pattern_.accept || pattern_.accept(found)) && accept_(found);
  }

  // The pattern's top must match the requested op itself, even if the pattern steps over such ops elsewhere.
  bool match_root(const TermNode& node, Next next) {
    if (node.form == Form::either)
      return std::any_of(node.children.begin(), node.children.end(),
                         [&](const Term& child) { return match_root(child.node(), next); });
    const Op& op = graph_.op(root_);
    if (op.outputs.empty() || op.outputs[0] == kNoValue) return false;
    if (node.form == Form::many) return match_many(node, op.outputs[0], next);
    return node.form == Form::op && match_op(node, root_, next);
  }

  bool match_term(const TermNode& node, ValueIndex value, Next next) {
    if (++steps_ > max_steps_) return false;
    if (value == kNoValue) return match_absent(node, next);
    switch (node.form) {
      case Form::absent: return false;
      case Form::value: return match_value(node, value, next);
      case Form::number: return match_number(node, value, next);
      case Form::either:
        return std::any_of(node.children.begin(), node.children.end(), [&](const Term& child) {
          return may_lead_to(child.node(), value) && match_term(child.node(), value, next);
        });
      case Form::many: return match_many(node, value, next);
      default: return match_made(node, value, next);
    }
  }

  bool match_absent(const TermNode& node, Next next) {
    if (node.form == Form::absent) return next();
    return node.form == Form::either && std::any_of(node.children.begin(), node.children.end(),
                                                    [&](const Term& child) { return match_absent(child.node(), next); });
  }

  bool match_value(const TermNode& node, ValueIndex value, Next next) {
    for (const Entry& entry : entries_) {
      if (entry.kind != Entry::Kind::value || *entry.name != node.name) continue;
      if (entry.value == value) return next();
      if (before_widening(graph_, entry.value) != before_widening(graph_, value)) return false;
    }
    return with({Entry::Kind::value, &node.name, value, -1}, next);
  }

  bool match_number(const TermNode& node, ValueIndex value, Next next) {
    const ValueIndex constant = known_constant(graph_, value, pattern_.steps_over);
    if (constant == kNoValue) return false;
    if (node.name.empty()) return holds(graph_, constant, node.number) && next();
    for (const Entry& entry : entries_) {
      if (entry.kind == Entry::Kind::number && *entry.name == node.name)
        return holds(graph_, constant, *graph_.value(entry.value).constant) && next();
    }
    return with({Entry::Kind::number, &node.name, constant, -1}, next);
  }

  // Tries the producer, and the producers above ops that may be stepped over.
  bool match_made(const TermNode& node, ValueIndex value, Next next) {
    const size_t mark = entries_.size();
    for (Port producer = graph_.value(value).producer; producer.op >= 0;) {
      const Op& op = graph_.op(producer.op);
      if (producer.port == 0 && match_op(node, producer.op, next)) return true;
      if (!may_step_over(op)) break;
      entries_.push_back({Entry::Kind::op, nullptr, kNoValue, producer.op});
      producer = graph_.value(op.inputs[0]).producer;
    }
    entries_.resize(mark);
    return false;
  }

  bool match_op(const TermNode& node, int position, Next next) {
    const Op& op = graph_.op(position);
    if (!node.heads.test(static_cast<size_t>(op.kind))) return false;
    if (node.attributes && !node.attributes(op)) return false;
    const size_t mark = entries_.size();
    entries_.push_back({Entry::Kind::op, nullptr, kNoValue, position});
    if (!node.name.empty()) entries_.push_back({Entry::Kind::made, &node.name, op.outputs[0], position});
    if (match_inputs(node, op, next)) return true;
    entries_.resize(mark);
    return false;
  }

  bool match_inputs(const TermNode& node, const Op& op, Next next) {
    for (size_t port = node.children.size(); port < op.inputs.size(); ++port)
      if (op.inputs[port] != kNoValue) return false;
    if (match_input(node, op, 0, false, next)) return true;
    return node.children.size() == 2 && op.inputs.size() == 2 && schema_of(op.kind).traits.commutative &&
           op.inputs[0] != op.inputs[1] && match_input(node, op, 0, true, next);
  }

  bool match_input(const TermNode& node, const Op& op, size_t port, bool exchanged, Next next) {
    if (port == node.children.size()) return next();
    const size_t from = exchanged ? 1 - port : port;
    const ValueIndex input = from < op.inputs.size() ? op.inputs[from] : kNoValue;
    const TermNode& child = node.children[port].node();
    if (input != kNoValue && !may_lead_to(child, input)) return false;
    return match_term(child, input, [&] { return match_input(node, op, port + 1, exchanged, next); });
  }

  // Breadth-first over values that are reached through ops of the class. Each value is visited once.
  bool match_many(const TermNode& node, ValueIndex top, Next next) {
    struct Reached {
      ValueIndex value;
      int op;         // that led here
      size_t parent;  // position in `reached`
    };
    std::vector<Reached> reached{{top, -1, 0}};
    const size_t mark = entries_.size();
    for (size_t i = 0; i < reached.size(); ++i) {
      for (size_t at = i; reached[at].op >= 0; at = reached[at].parent)
        entries_.push_back({Entry::Kind::op, nullptr, kNoValue, reached[at].op});
      if (match_term(node.children[0].node(), reached[i].value, next)) return true;
      entries_.resize(mark);
      const int producer = graph_.value(reached[i].value).producer.op;
      if (producer < 0) continue;
      const Op& op = graph_.op(producer);
      if (schema_of(op.kind).op_class != node.repeated) continue;
      for (const ValueIndex input : op.inputs) {
        const auto seen = [&](const Reached& other) { return other.value == input; };
        if (input == kNoValue || reached.size() >= kMaxRepeated || std::any_of(reached.begin(), reached.end(), seen)) continue;
        reached.push_back({input, producer, i});
      }
    }
    return false;
  }

  bool with(const Entry& entry, Next next) {
    const size_t mark = entries_.size();
    entries_.push_back(entry);
    if (next()) return true;
    entries_.resize(mark);
    return false;
  }

  bool may_step_over(const Op& op) const {
    return pattern_.steps_over != nullptr && op.inputs.size() == 1 && op.inputs[0] != kNoValue &&
           pattern_.steps_over(graph_, op);
  }

  bool may_lead_to(const TermNode& node, ValueIndex value) const {
    if (node.any_head) return true;
    for (int producer = graph_.value(value).producer.op; producer >= 0;) {
      const Op& op = graph_.op(producer);
      if (node.heads.test(static_cast<size_t>(op.kind))) return true;
      if (!may_step_over(op)) return false;
      producer = graph_.value(op.inputs[0]).producer.op;
    }
    return false;
  }

  const Graph& graph_;
  const Pattern& pattern_;
  const int root_;
  const std::function<bool(const Match&)>& accept_;
  std::vector<Entry> entries_;
  int max_steps_;
  int steps_ = 0;
};

}  // namespace

// ---- terms

Term::Term(double number) : Term(pattern::number(number)) {}

Term Term::named(std::string name) const {
  LAMINA_CHECK(node().form == Form::op || node().form == Form::either, "only a term that ops make can be named");
  TermNode copy = node();
  if (copy.form == Form::either) {
    for (Term& alternative : copy.children) alternative = alternative.named(name);
  } else {
    copy.name = std::move(name);
  }
  return make(std::move(copy));
}

Term Term::where(std::function<bool(const Op&)> attributes) const {
  LAMINA_CHECK(node().form == Form::op, "attributes are those of an op term");
  TermNode copy = node();
  copy.attributes = std::move(attributes);
  return make(std::move(copy));
}

Term value(std::string name) { return make({.form = Form::value, .name = std::move(name), .any_head = true}); }

Term number(double value) { return make({.form = Form::number, .number = value, .any_head = true}); }

Term number(std::string name) { return make({.form = Form::number, .name = std::move(name), .any_head = true}); }

Term op(OpKind kind, std::vector<Term> inputs) {
  TermNode node{.form = Form::op, .children = std::move(inputs)};
  node.heads.set(index_of(kind));
  return make(std::move(node));
}

Term op(OpClass op_class, std::vector<Term> inputs) {
  return make({.form = Form::op, .heads = kinds_of(op_class), .children = std::move(inputs)});
}

Term absent() { return make({.form = Form::absent}); }

Term either(std::vector<Term> alternatives) {
  TermNode node{.form = Form::either, .children = std::move(alternatives)};
  for (const Term& alternative : node.children) take_heads(node, alternative.node());
  return make(std::move(node));
}

Term maybe(OpKind kind, Term input) { return either({op(kind, {input}), input}); }

Term many(OpClass op_class, Term input) {
  TermNode node{.form = Form::many, .repeated = op_class, .heads = kinds_of(op_class)};
  take_heads(node, input.node());
  node.children.push_back(std::move(input));
  return make(std::move(node));
}

Term operator+(Term a, Term b) { return op(OpKind::Add, {std::move(a), std::move(b)}); }
Term operator*(Term a, Term b) { return op(OpKind::Multiply, {std::move(a), std::move(b)}); }

// ---- matches

const Match::Entry* Match::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.name != nullptr && *entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

std::vector<int> Match::ops() const {
  std::vector<int> ops;
  for (const Entry& entry : entries_)
    if (entry.kind == Entry::Kind::op) ops.push_back(entry.op);
  std::sort(ops.begin(), ops.end());
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  return ops;
}

ValueIndex Match::value(std::string_view name) const {
  const Entry* entry = find(name);
  return entry == nullptr ? kNoValue : entry->value;
}

ValueIndex Match::value(std::string_view name, DataType dtype) const {
  for (const ValueIndex use : uses(name)) {
    for (ValueIndex value = use;; value = graph_.op(graph_.value(value).producer.op).inputs[0]) {
      if (graph_.tensor(value).dtype == dtype) return value;
      if (before_widening(graph_, value) == value) break;
    }
  }
  return kNoValue;
}

std::vector<ValueIndex> Match::uses(std::string_view name) const {
  std::vector<ValueIndex> values;
  for (const Entry& entry : entries_)
    if (entry.kind == Entry::Kind::value && *entry.name == name) values.push_back(entry.value);
  return values;
}

std::vector<ValueIndex> Match::made(std::string_view name) const {
  std::vector<ValueIndex> values;
  for (const Entry& entry : entries_) {
    if (entry.kind != Entry::Kind::made || *entry.name != name) continue;
    if (std::find(values.begin(), values.end(), entry.value) == values.end()) values.push_back(entry.value);
  }
  return values;
}

std::optional<double> Match::number(std::string_view name) const {
  const Entry* entry = find(name);
  return entry == nullptr ? std::nullopt : graph_.value(entry->value).constant;
}

bool Match::is_number(std::string_view name, double expected) const {
  const Entry* entry = find(name);
  return entry == nullptr || holds(graph_, entry->value, expected);
}

Outcome match(const Graph& graph, const Pattern& pattern, int root, const std::function<bool(const Match&)>& accept,
              int max_steps) {
  return Search(graph, pattern, root, accept, max_steps).run();
}

bool may_start_at(const Pattern& pattern, OpKind kind) {
  const TermNode& top = pattern.body.node();
  return top.any_head || top.heads.test(index_of(kind));
}

ValueIndex before_widening(const Graph& graph, ValueIndex value) {
  for (;;) {
    const int producer = graph.value(value).producer.op;
    if (producer < 0) return value;
    const Op& op = graph.op(producer);
    if (!schema_of(op.kind).traits.converts || !widens(graph.tensor(op.inputs[0]).dtype, graph.tensor(value).dtype))
      return value;
    value = op.inputs[0];
  }
}

ValueIndex known_constant(const Graph& graph, ValueIndex value, bool (*steps_over)(const Graph&, const Op&)) {
  for (;;) {
    const Value& known = graph.value(value);
    if (known.constant) return value;
    if (known.producer.op < 0 || steps_over == nullptr) return kNoValue;
    const Op& op = graph.op(known.producer.op);
    if (op.inputs.size() != 1 || !steps_over(graph, op)) return kNoValue;
    value = op.inputs[0];
  }
}

}  // namespace lamina::pattern
