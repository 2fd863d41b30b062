// Lines of text for a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace lamina::driver {

inline constexpr size_t kLineWidth = 80;

// The text, or its start and its end with "..." between them, in at most `width` characters, 12 or more.
std::string without_middle(const std::string& text, size_t width);

// Lines of at most kLineWidth characters, each after `indent` and with an end of line. Words that are longer stay whole.
std::string wrapped(const std::string& text, const std::string& indent);

// How far an error uses what is allowed: "27%", "3.5x", "over 1000x".
std::string share_of_allowed(double of_allowed);

// The name in `names` that is most like `given`, "" if none is like it: at most two letters differ, are missing, too many or
// change places.
template <typename Names>
std::string nearest(const std::string& given, const Names& names);
size_t edits(const std::string& a, const std::string& b);

template <typename Names>
std::string nearest(const std::string& given, const Names& names) {
  constexpr size_t kMost = 2;
  std::string best;
  size_t least = kMost + 1;
  for (const std::string& name : names) {
    const size_t distance = edits(given, name);
    if (distance >= least) continue;
    best = name, least = distance;
  }
  return best;
}

}  // namespace lamina::driver
