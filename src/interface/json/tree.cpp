#include "interface/json/tree.h"

#include <charconv>
#include <cmath>

#include "interface/json/quoted.h"

namespace lamina::json {

Tree::Tree(double value) {
  if (!std::isfinite(value)) {
    text_ = "null";
    return;
  }
  char digits[64];
  text_.assign(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  if (text_.find_first_of(".e") == std::string::npos) text_ += ".0";
}

Tree::Tree(std::string_view text) : text_(quoted(text)) {}

Tree Tree::list(std::initializer_list<Tree> values) {
  Tree made(nullptr);
  made.kind_ = Kind::list;
  for (const Tree& value : values) made.push_back(value);
  return made;
}

Tree Tree::object(std::initializer_list<Member> members) {
  Tree made(nullptr);
  made.kind_ = Kind::object;
  made.members_ = members;
  return made;
}

void Tree::push_back(Tree value) { members_.emplace_back(std::string(), std::move(value)); }

void Tree::add(std::string key, Tree value) { members_.emplace_back(std::move(key), std::move(value)); }

std::string Tree::text(bool is_indented) const {
  std::string text;
  append_to(text, is_indented, 0);
  return text;
}

void Tree::append_to(std::string& text, bool is_indented, size_t depth) const {
  if (kind_ == Kind::scalar) {
    text += text_;
    return;
  }
  const auto new_line = [&](size_t indent) {
    if (is_indented) text.append("\n").append(indent, ' ');
  };
  text += kind_ == Kind::list ? '[' : '{';
  for (size_t i = 0; i < members_.size(); ++i) {
    if (i > 0) text += ',';
    new_line(depth + 1);
    const auto& [key, value] = members_[i];
    if (kind_ == Kind::object) text.append(quoted(key)).append(is_indented ? ": " : ":");
    value.append_to(text, is_indented, depth + 1);
  }
  if (!members_.empty()) new_line(depth);
  text += kind_ == Kind::list ? ']' : '}';
}

}  // namespace lamina::json
