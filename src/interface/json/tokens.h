// The tokens of a dump: invalid JSON that occurs in dumps is repaired, and numbers keep the digits that a conversion to
// double would lose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace lamina::json {

// Puts bare infinities and NaNs in quotes and escapes control characters inside strings. Text that needs neither is not
// copied. With `shortens`, a run of blanks between tokens becomes one blank: two thirds of a dump are indentation, the
// largest cost of parsing.
class Repair {
 public:
  explicit Repair(std::string_view text, bool shortens = false) : text_(text), shortens_(shortens) {}

  // The repaired text, as a view into the original or into this object.
  std::string_view run();

 private:
  void replace(size_t at, size_t length, const std::string& with);

  std::string_view text_;
  bool shortens_;
  std::string result_;
  size_t copied_ = 0;
};

// A number: an integer of 64 bits, signed or unsigned, or a real. Its f32 value is rounded once, directly from the text.
struct Number {
  enum class Kind : uint8_t { integer, unsigned_integer, real };
  uint64_t bits = 0;  // for integers
  double real = 0;    // for all kinds
  float single = 0;
  Kind kind = Kind::integer;

  static Number of(int64_t value);
  static Number of(uint64_t value);
  static Number of(double value, const std::string& text);
  static std::optional<Number> from_word(const std::string& word);  // for the bare words that Repair quotes

  // nullopt if the number is not of that kind.
  std::optional<uint64_t> as_unsigned() const;
  std::optional<int64_t> as_signed() const;
  std::optional<float> as_single() const;
  std::optional<double> as_double() const;
};

using Scalar = std::variant<std::monostate, bool, Number, std::string>;  // monostate: null

// The scalar as messages show it: strings in quotes, cut after 80 bytes.
std::string show(const Scalar& scalar);

// The scalar as a number, bare words included; nullopt if it is not a number.
std::optional<Number> number_of(const Scalar& scalar);

// The position of a byte, as "line L, column C".
std::string line_and_column(std::string_view text, size_t position);

}  // namespace lamina::json
