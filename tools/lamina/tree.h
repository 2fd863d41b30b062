// A tree of texts, drawn with lines.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace lamina::driver {

struct Tree {
  std::string text;
  std::vector<Tree> branches = {};

  Tree& add(std::string branch) { return branches.emplace_back(Tree{std::move(branch)}); }
};

// Lines have at most kLineWidth characters (lines.h), unless a word is longer.
void print_tree(std::ostream& out, const Tree& tree);

}  // namespace lamina::driver
