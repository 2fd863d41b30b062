// A JSON value for writing: numbers, strings, lists, and objects whose keys keep their insertion order.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamina::json {

class Tree {
 public:
  using Member = std::pair<std::string, Tree>;

  Tree(std::nullptr_t) : text_("null") {}
  Tree(bool value) : text_(value ? "true" : "false") {}
  template <std::integral T>
  Tree(T value) : text_(std::to_string(value)) {}
  Tree(double value);  // null if it is not finite
  Tree(std::string_view text);
  Tree(const std::string& text) : Tree(std::string_view(text)) {}
  Tree(const char* text) : Tree(std::string_view(text)) {}
  template <typename T>
  Tree(const std::optional<T>& value) : Tree(value ? Tree(*value) : Tree(nullptr)) {}
  template <typename T>
  Tree(const std::vector<T>& values) : kind_(Kind::list) {
    for (const T& value : values) push_back(value);
  }

  static Tree list(std::initializer_list<Tree> values = {});
  static Tree object(std::initializer_list<Member> members = {});

  void push_back(Tree value);                // for lists
  void add(std::string key, Tree value);     // for objects
  std::string text(bool is_indented) const;  // indented: one space per level, one element per line; else a single line

 private:
  enum class Kind { scalar, list, object };

  void append_to(std::string& text, bool is_indented, size_t depth) const;

  Kind kind_ = Kind::scalar;
  std::string text_;             // for scalars
  std::vector<Member> members_;  // of an object, or of a list (whose keys are empty)
};

}  // namespace lamina::json
