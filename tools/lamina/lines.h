// Lines of text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lamina::driver {

inline constexpr size_t kLineWidth = 80;

// The text, or its start and its end with "..." between them, in at most `width` characters, 12 or more.
std::string without_middle(const std::string& text, size_t width);

// Lines of at most kLineWidth characters, each after `indent` and with an end of line. Words that are longer stay whole.
std::string wrapped(const std::string& text, const std::string& indent);

// The text wrapped from `column` on, right of `left` if that leaves a space between them, else below it.
std::string beside(const std::string& left, size_t column, const std::string& text);

// How far an error uses what is allowed: "27%", "3.5x", "over 1000x".
std::string share_of_allowed(double of_allowed);

// The name in `names` that is most like `given`, "" if none is like it: at most two letters differ, are missing, too many or
// change places.
std::string nearest(const std::string& given, const std::vector<std::string>& names);

}  // namespace lamina::driver
