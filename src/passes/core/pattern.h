// The pattern language: the structure of a piece of a graph, written as a C++ value.
//
// A pattern is a tree of terms. It is matched from the value that the piece computes up to the values that it reads:
//
//   x ──┬──> Sigmoid ──> Multiply ──> dst        const Term x = value("x");
//       └──────────────────┘                     const Pattern swish{.name = "swish", .body = x * op(OpKind::Sigmoid, {x})};
//
// A name refers to one value in the whole pattern: two uses of value("x") are one tensor. An op term does not restrict who
// else reads the op's result; the pass that uses the match checks that. The search tries all alternatives until `accept`
// agrees. It stops after kMaxSteps steps, so that its time is bounded for every graph.
#pragma once

#include <bitset>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interface/graph.h"
#include "interface/op_schema.h"

namespace lamina::pattern {

struct TermNode;

class Term {
 public:
  Term(double number);  // NOLINT: a number in a formula is a term
  explicit Term(std::shared_ptr<const TermNode> node) : node_(std::move(node)) {}
  const TermNode& node() const { return *node_; }

  // The same term. The values that it matches are found under this name (Match::made).
  Term named(std::string name) const;
  // The same op term, for ops whose attributes satisfy the predicate.
  Term where(std::function<bool(const Op&)> attributes) const;

 private:
  std::shared_ptr<const TermNode> node_;
};

// A side input: any value, with any producer.
Term value(std::string name);
// A graph input that is known to contain one number: this one (rounded to its type, or to six digits), or any number, which
// is stored under a name.
Term number(double value);
Term number(std::string name);
// Output 0 of an op whose inputs match, with one term per input port. An absent port matches only absent(). Add, Multiply and
// similar ops also match with their inputs exchanged.
Term op(OpKind kind, std::vector<Term> inputs);
Term op(OpClass op_class, std::vector<Term> inputs);
Term absent();
// The first alternative that leads to a match.
Term either(std::vector<Term> alternatives);
// An optional op: `kind` on top of `input`, or `input` itself.
Term maybe(OpKind kind, Term input);
// Repeated ops: zero or more ops of the class, each reading the next through any of its inputs; `input` is below the last.
Term many(OpClass op_class, Term input);

// Operators for formulas: plain Add and Multiply. patterns/spellings.h has the other forms in which graphs write them.
Term operator+(Term a, Term b);
Term operator*(Term a, Term b);

class Match;

struct Pattern {
  std::string name;
  Term body;
  // Ops that may be between any two ops of the pattern, and above a number: casts, reshapes. They become part of the match.
  bool (*steps_over)(const Graph& graph, const Op& op) = nullptr;
  // Conditions that the tree cannot express: shapes, axes, related numbers. Null accepts everything.
  std::function<bool(const Match&)> accept = nullptr;
};

// The result of a search. Ops are positions in graph().ops().
class Match {
 public:
  // One matched item. Later entries depend on earlier ones.
  struct Entry {
    enum class Kind { op, value, number, made };
    Kind kind;
    const std::string* name;
    ValueIndex value;
    int op;
  };
  Match(const Graph& graph, int root, const std::vector<Entry>& entries) : graph_(graph), root_(root), entries_(entries) {}

  const Graph& graph() const { return graph_; }
  int root() const { return root_; }
  const Op& root_op() const { return graph_.op(root_); }

  std::vector<int> ops() const;  // ascending, each once, including those that were stepped over
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // of its first use; kNoValue if the chosen alternative does not use the name
  ValueIndex value(std::string_view name) const;
  // The value with this type at one of its uses or before a widening cast; kNoValue if there is none.
  ValueIndex value(std::string_view name, DataType dtype) const;
  std::vector<ValueIndex> uses(std::string_view name) const;  // one tensor, possibly widened; each use once
  std::vector<ValueIndex> made(std::string_view name) const;  // by terms of this name, each once
  std::optional<double> number(std::string_view name) const;
  // compares as number(double) does; true if the match has no such number
  bool is_number(std::string_view name, double expected) const;

 private:
  const Entry* find(std::string_view name) const;

  const Graph& graph_;
  int root_;
  const std::vector<Entry>& entries_;
};

inline constexpr int kMaxSteps = 20'000;  // of one search

enum class Outcome {
  none,
  matched,
  given_up,  // the steps ran out before a match was found
};

// Matches the pattern with its top term at op `root`. A match needs both the pattern's own `accept` and this one.
Outcome match(const Graph& graph, const Pattern& pattern, int root, const std::function<bool(const Match&)>& accept,
              int max_steps = kMaxSteps);

// Whether an op of this kind can be the top of the pattern. A cheap test for passes that try every op.
bool may_start_at(const Pattern& pattern, OpKind kind);

// The tensor before casts that keep every value (bf16 to f32, ...).
ValueIndex before_widening(const Graph& graph, ValueIndex value);

// The constant with a known number that `value` equals, through ops that `steps_over` allows; kNoValue if it is none.
ValueIndex known_constant(const Graph& graph, ValueIndex value, bool (*steps_over)(const Graph&, const Op&));

}  // namespace lamina::pattern
