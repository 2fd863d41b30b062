#include "interface/json/quoted.h"

#include <algorithm>
#include <cstddef>

namespace lamina::json {
namespace {

// The length of the well-formed UTF-8 sequence at `at`; 0 if there is none.
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(at);
  const auto follows = [&](size_t count) {
    for (size_t i = 1; i <= count; ++i)
      if ((byte(at + i) & 0xC0U) != 0x80U) return false;
    return true;
  };
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  const unsigned second = byte(at + 1);
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first < 0xF0 || first > 0xF4) return 0;
  const bool out_of_range = (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return follows(3) && !out_of_range ? 4 : 0;
}

std::string escaped_control(unsigned char c) {
  constexpr char kHex[] = "0123456789abcdef";
  return std::string("\\u00") + kHex[c >> 4] + kHex[c & 15];
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = utf8_length(text, i);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += escaped_control(static_cast<unsigned char>(c));
    } else if (length == 0) {
      result += "\xEF\xBF\xBD";
    } else {
      result.append(text.substr(i, length));
    }
    i += std::max<size_t>(length, 1);
  }
  return result + '"';
}

}  // namespace lamina::json
