#include "interface/json_tokens.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "interface/status.h"

namespace lamina::json {
namespace {

template <typename T>
std::optional<T> whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional<T>(value) : std::nullopt;
}

}  // namespace

Number Number::of(int64_t value) {
  return {static_cast<uint64_t>(value), static_cast<double>(value), static_cast<float>(value), Kind::integer};
}

Number Number::of(uint64_t value) {
  const Kind kind = value > INT64_MAX ? Kind::unsigned_integer : Kind::integer;
  return {value, static_cast<double>(value), static_cast<float>(value), kind};
}

Number Number::infinity(bool negative) {
  const float value = negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  return {0, static_cast<double>(value), value, Kind::real};
}

Number Number::not_a_number() { return {0, std::nan(""), std::numeric_limits<float>::quiet_NaN(), Kind::real}; }

std::optional<Number> Number::from_text(std::string_view text) {
  if (const auto value = whole<int64_t>(text)) return of(*value);
  if (const auto value = whole<uint64_t>(text)) return of(*value);
  const auto value = whole<double>(text);
  if (!value) return std::nullopt;
  return Number{0, *value, whole<float>(text).value_or(static_cast<float>(*value)), Kind::real};
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

std::string show(const Scalar& scalar) {
  if (std::holds_alternative<bool>(scalar)) return std::get<bool>(scalar) ? "true" : "false";
  if (std::holds_alternative<std::string_view>(scalar)) return join('"', std::get<std::string_view>(scalar).substr(0, 80), '"');
  if (const auto* number = std::get_if<Number>(&scalar)) {
    if (const auto value = number->as_signed()) return std::to_string(*value);
    if (const auto value = number->as_unsigned()) return std::to_string(*value);
    return join(number->real);
  }
  return "null";
}

std::optional<Number> number_of(const Scalar& scalar) {
  if (const auto* number = std::get_if<Number>(&scalar)) return *number;
  return std::nullopt;
}

std::string line_and_column(std::string_view text, size_t position) {
  const std::string_view before = text.substr(0, position);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_begin = before.rfind('\n') + 1;  // 0 in the first line
  return join("line ", line, ", column ", before.size() - line_begin + 1);
}

}  // namespace lamina::json
