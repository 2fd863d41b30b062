#include "interface/number_text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace lamina {
namespace {

// The largest double has 309 digits before the point.
template <typename... Form>
std::string text_of(double value, Form... form) {
  std::array<char, 512> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value, form...).ptr};
}

}  // namespace

std::string fixed_text(double value, int digits) { return text_of(value, std::chars_format::fixed, digits); }

std::string general_text(double value, int digits) { return text_of(value, std::chars_format::general, digits); }

std::string exact_text(double value) {
  if (!std::isfinite(value)) return text_of(value);
  return (std::signbit(value) ? "-0x" : "0x") + text_of(std::fabs(value), std::chars_format::hex);
}

}  // namespace lamina
