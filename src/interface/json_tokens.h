// The values of a dump's text: numbers keep what JSON's doubles would lose.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace lamina::json {

// A number of 64-bit range, signed or not, or a real one; as an f32 it was rounded once, from the text.
struct Number {
  enum class Kind : uint8_t { integer, unsigned_integer, real };
  uint64_t bits = 0;  // of an integer
  double real = 0;    // of any number
  float single = 0;
  Kind kind = Kind::integer;

  static Number of(int64_t value);
  static Number of(uint64_t value);
  static Number infinity(bool negative);
  static Number not_a_number();
  static std::optional<Number> from_text(std::string_view text);  // nothing when f64 cannot hold it

  // Nothing when the number is not of that kind.
  std::optional<uint64_t> as_unsigned() const;
  std::optional<int64_t> as_signed() const;
  std::optional<float> as_single() const;
};

using Scalar = std::variant<std::monostate, bool, Number, std::string_view>;  // monostate: null

// As messages show it: strings in quotes, cut after 80 bytes.
std::string show(const Scalar& scalar);

// The number that a scalar is.
std::optional<Number> number_of(const Scalar& scalar);

// Place of a byte of the text as "line L, column C".
std::string line_and_column(std::string_view text, size_t position);

}  // namespace lamina::json
