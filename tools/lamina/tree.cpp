#include "lamina/tree.h"

#include <algorithm>
#include <ostream>

#include "lamina/lines.h"

namespace lamina::driver {

namespace {

// `first` and `rest`: what is before the first line of the text, and before the others.
void print(std::ostream& out, const Tree& tree, const std::string& first, const std::string& rest, size_t depth) {
  for (size_t start = 0, line = 0; start <= tree.text.size(); ++line) {
    const size_t end = std::min(tree.text.find('\n', start), tree.text.size());
    const std::string text = tree.text.substr(start, end - start);
    // A text of several lines keeps its lines and their indents.
    const bool is_program = tree.text.find('\n') != std::string::npos;
    const std::string lines = is_program ? text + '\n' : wrapped(text, std::string(depth * 3, ' '));
    for (size_t at = 0, piece = 0; at < lines.size(); ++piece) {
      const size_t stop = lines.find('\n', at);
      out << (line + piece == 0 ? first : rest) << lines.substr(at, stop - at).substr(is_program ? 0 : depth * 3) << '\n';
      at = stop + 1;
    }
    start = end + 1;
  }
  for (size_t i = 0; i < tree.branches.size(); ++i) {
    const bool is_last = i + 1 == tree.branches.size();
    print(out, tree.branches[i], rest + (is_last ? "└─ " : "├─ "), rest + (is_last ? "   " : "│  "), depth + 1);
  }
}

}  // namespace

void print_tree(std::ostream& out, const Tree& tree) { print(out, tree, "", "", 0); }

}  // namespace lamina::driver
