#include "interface/json/tokens.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "interface/status.h"

namespace lamina::json {
namespace {

// The length of a bare inf, nan, Infinity or NaN (signed or not) at `at`; 0 if there is none.
size_t bare_number_length(std::string_view text, size_t at) {
  const size_t sign = text[at] == '-' || text[at] == '+' ? 1 : 0;
  for (const std::string_view word : {"infinity", "Infinity", "inf", "Inf", "nan", "NaN"})
    if (text.substr(at + sign, word.size()) == word) return sign + word.size();
  return 0;
}

// The spelling for such a token: "inf", "-inf" or "nan".
std::string canonical_number(std::string_view token) {
  if (token.ends_with("nan") || token.ends_with("NaN")) return "nan";
  return token.front() == '-' ? "-inf" : "inf";
}

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

std::string escaped(char c) {
  constexpr char kHex[] = "0123456789abcdef";
  return std::string("\\u00") + kHex[c >> 4] + kHex[c & 15];
}

}  // namespace

std::string_view Repair::run() {
  bool in_string = false;
  for (size_t i = 0; i < text_.size(); ++i) {
    const char c = text_[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      if (static_cast<unsigned char>(c) < 0x20) replace(i, 1, escaped(c));
    } else if (c == '"') {
      in_string = true;
    } else if (c == '\n' && shortens_) {
      size_t end = i + 1;
      while (end < text_.size() && is_blank(text_[end])) ++end;
      if (end > i + 1) replace(i, end - i, "\n");
      i = end - 1;
    } else if (c == '-' || c == '+' || c == 'i' || c == 'I' || c == 'n' || c == 'N') {
      const size_t length = bare_number_length(text_, i);
      if (length == 0) continue;
      replace(i, length, '"' + canonical_number(text_.substr(i, length)) + '"');
      i += length - 1;
    }
  }
  if (copied_ == 0) return text_;
  result_.append(text_.substr(copied_));
  return result_;
}

void Repair::replace(size_t at, size_t length, const std::string& with) {
  result_.append(text_.substr(copied_, at - copied_)).append(with);
  copied_ = at + length;
}

Number Number::of(int64_t value) {
  return {static_cast<uint64_t>(value), static_cast<double>(value), static_cast<float>(value), Kind::integer};
}

Number Number::of(uint64_t value) {
  const Kind kind = value > INT64_MAX ? Kind::unsigned_integer : Kind::integer;
  return {value, static_cast<double>(value), static_cast<float>(value), kind};
}

Number Number::of(double value, const std::string& text) {
  Number number{0, value, static_cast<float>(value), Kind::real};
  // The parser has replaced the decimal point by that of the process's locale.
  std::string plain = text;
  const size_t point = plain.find_first_not_of("+-0123456789eE");
  if (point != std::string::npos) plain[point] = '.';
  float single = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), single);
  if (error == std::errc() && end == plain.data() + plain.size()) number.single = single;
  return number;
}

std::optional<Number> Number::from_word(const std::string& word) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (word == "inf") return Number{0, kInfinity, std::numeric_limits<float>::infinity(), Kind::real};
  if (word == "-inf") return Number{0, -kInfinity, -std::numeric_limits<float>::infinity(), Kind::real};
  if (word == "nan") return Number{0, std::nan(""), std::numeric_limits<float>::quiet_NaN(), Kind::real};
  return std::nullopt;
}

std::optional<uint64_t> Number::as_unsigned() const {
  if (kind == Kind::unsigned_integer || (kind == Kind::integer && static_cast<int64_t>(bits) >= 0)) return bits;
  return std::nullopt;
}

std::optional<int64_t> Number::as_signed() const {
  if (kind == Kind::integer) return static_cast<int64_t>(bits);
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (kind == Kind::real && std::abs(real) <= kExact && real == std::trunc(real)) return static_cast<int64_t>(real);
  return std::nullopt;
}

std::optional<float> Number::as_single() const {
  if (std::isfinite(real) && !std::isfinite(single)) return std::nullopt;
  return single;
}

std::optional<double> Number::as_double() const { return real; }

std::string show(const Scalar& scalar) {
  if (std::holds_alternative<bool>(scalar)) return std::get<bool>(scalar) ? "true" : "false";
  if (std::holds_alternative<std::string>(scalar)) return '"' + std::get<std::string>(scalar).substr(0, 80) + '"';
  if (const auto* number = std::get_if<Number>(&scalar)) {
    if (const auto value = number->as_signed()) return std::to_string(*value);
    if (const auto value = number->as_unsigned()) return std::to_string(*value);
    return join(number->real);
  }
  return "null";
}

std::optional<Number> number_of(const Scalar& scalar) {
  if (const auto* number = std::get_if<Number>(&scalar)) return *number;
  if (const auto* word = std::get_if<std::string>(&scalar)) return Number::from_word(*word);
  return std::nullopt;
}

std::string line_and_column(std::string_view text, size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t last = before.rfind('\n');
  const size_t column = last == std::string_view::npos ? before.size() : before.size() - last - 1;
  return join("line ", line, ", column ", std::max<size_t>(column, 1));
}

}  // namespace lamina::json
