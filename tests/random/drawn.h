// Statistics of random graphs: how often each op kind, type combination and layout was drawn.
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

  // Op kinds ("Abs") and type combinations ("Abs T=f16") that the schemas allow and no graph contained.
  std::vector<std::string> kinds_never_drawn() const;
  std::vector<std::string> types_never_drawn() const;
  // Layouts that no input of a contraction had, though it had enough axes ("MatMul weights: padded rows").
  std::vector<std::string> layouts_never_drawn() const;

  // Prints one line per kind: its count, its type combinations, and the layouts of its inputs and outputs.
  void print(std::ostream& out) const;

 private:
  struct OfKind {
    size_t count = 0, constants = 0;
    std::map<std::string, size_t> types, layouts;  // by name
    std::set<Types> drawn_types;
    std::map<std::string, size_t> port_layouts;  // by port and layout
    std::map<std::string, size_t> most_axes;     // by port
  };
  size_t ops_ = 0;
  std::map<OpKind, OfKind> kinds_;
  std::map<std::string, size_t> types_, layouts_;
};

}  // namespace lamina::testing
