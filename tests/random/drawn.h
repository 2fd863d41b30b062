// What random graphs were made of: how often each op kind, combination of types and layout was drawn.
#pragma once

#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "random/random_op.h"
#include "random/recipe.h"

namespace lamina::testing {

class Drawn {
 public:
  void count(const Recipe& recipe);

  size_t ops() const { return ops_; }
  size_t kinds() const { return kinds_.size(); }

  // What the schemas allow and no graph held: kinds ("Abs"), and combinations of a kind's types ("Abs T=f16").
  std::vector<std::string> kinds_never_drawn() const;
  std::vector<std::string> types_never_drawn() const;
  // Layouts that no input of a kind that contracts had ("MatMul weights: padded rows").
  std::vector<std::string> layouts_never_drawn() const;

  // A line a kind: how often, its combinations of types, layouts of its inputs and outputs.
  void print(std::ostream& out) const;

 private:
  struct OfKind {
    size_t count = 0, constants = 0;
    std::map<std::string, size_t> types, layouts;  // by name
    std::set<Types> drawn_types;
    std::map<std::string, size_t> port_layouts;  // by port and layout
  };
  size_t ops_ = 0;
  std::map<OpKind, OfKind> kinds_;
  std::map<std::string, size_t> types_, layouts_;
};

}  // namespace lamina::testing
