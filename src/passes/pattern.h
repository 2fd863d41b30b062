// The pattern language: what a piece of a graph looks like, written as a value.
//
// A pattern is a tree of terms. It is matched from the value that the piece makes upwards to the values that it reads:
//
//   x ──┬──> Sigmoid ──> Multiply ──> dst        const Term x = value("x");
//       └──────────────────┘                     const Pattern swish{.name = "swish", .body = x * op(OpKind::Sigmoid, {x})};
//
// A name stands for one thing in the whole pattern: two uses of value("x") are one tensor. An op term says nothing about who
// else reads what the op makes: that is for the pass that uses the match. The search goes through every alternative until
// `accept` agrees, and gives up after kMaxSteps steps, so that no graph makes it long.
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

  // The same term; the values that it makes are found under this name (Match::made).
  Term named(std::string name) const;
  // The same op term, for ops whose attributes satisfy the predicate.
  Term where(std::function<bool(const Op&)> attributes) const;

 private:
  std::shared_ptr<const TermNode> node_;
};

// A side input: any value, whoever makes it.
Term value(std::string name);
// A graph input known to hold one number: this one (as its type rounds it, or to six digits), or any, kept under a name.
Term number(double value);
Term number(std::string name);
// Output 0 of an op whose inputs match, one term an input port; a port that is left out matches absent() alone. Add, Multiply
// and the like match with their inputs exchanged as well.
Term op(OpKind kind, std::vector<Term> inputs);
Term op(OpClass op_class, std::vector<Term> inputs);
Term absent();
// The first alternative that leads to a match.
Term either(std::vector<Term> alternatives);
// An optional op: `kind` on top of `input`, or `input` itself.
Term maybe(OpKind kind, Term input);
// Repeated ops: none or more ops of the class, one on top of the other, `input` below them through any of their inputs.
Term many(OpClass op_class, Term input);

// The formulas' own signs: plain Add and Multiply. What else may be written for them stands in patterns/spellings.h.
Term operator+(Term a, Term b);
Term operator*(Term a, Term b);

class Match;

struct Pattern {
  std::string name;
  Term body;
  // Ops that may stand between any two ops of the pattern, and above a number: casts, reshapes. They become part of the match.
  bool (*steps_over)(const Graph& graph, const Op& op) = nullptr;
  // What the tree cannot say: shapes, axes, numbers that belong together. Null: everything.
  std::function<bool(const Match&)> accept = nullptr;
};

// What was found. Ops are positions in graph().ops().
class Match {
 public:
  // One thing that was matched on the way; later entries depend on earlier ones.
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

  std::vector<int> ops() const;  // ascending, each once, those that were stepped over included
  bool has(std::string_view name) const { return find(name) != nullptr; }
  ValueIndex value(std::string_view name) const;  // of its first use; kNoValue when the alternative taken has no such name
  // Where the value is used with this type, or what it was widened from with this type; kNoValue: nowhere.
  ValueIndex value(std::string_view name, DataType dtype) const;
  std::vector<ValueIndex> uses(std::string_view name) const;  // one tensor, perhaps widened; each use once
  std::vector<ValueIndex> made(std::string_view name) const;  // by terms of this name, each once
  std::optional<double> number(std::string_view name) const;
  bool is_number(std::string_view name, double expected) const;  // as number(double) compares; true when it is not there

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
  given_up,  // nothing was found before the steps ran out
};

// Matches the pattern with its top term at op `root`. `accept` is asked after the pattern's own: both agree to a match.
Outcome match(const Graph& graph, const Pattern& pattern, int root, const std::function<bool(const Match&)>& accept,
              int max_steps = kMaxSteps);

// Whether an op of this kind can be the top of the pattern: cheap, for passes that ask every op.
bool may_start_at(const Pattern& pattern, OpKind kind);

// Above casts that keep every value (bf16 to f32, ...) the tensor is the same.
ValueIndex before_widening(const Graph& graph, ValueIndex value);

// The constant with a known number that the value is, below ops that `steps_over` allows; kNoValue: it is none.
ValueIndex known_constant(const Graph& graph, ValueIndex value, bool (*steps_over)(const Graph&, const Op&));

}  // namespace lamina::pattern
