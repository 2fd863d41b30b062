// The tokens of a dump: text that JSON forbids but dumps contain is repaired, and numbers keep what JSON's doubles would lose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace lamina::json {

// Puts bare infinities and NaNs in quotes and escapes control characters inside strings. Text that needs neither is not copied.
// With `shortens`, runs of blanks between tokens become one: dumps are two thirds indentation, which costs the parser most.
class Repair {
 public:
  explicit Repair(std::string_view text, bool shortens = false) : text_(text), shortens_(shortens) {}

  // The repaired text; a view of the original or of this object.
  std::string_view run();

 private:
  void replace(size_t at, size_t length, const std::string& with);

  std::string_view text_;
  bool shortens_;
  std::string result_;
  size_t copied_ = 0;
};

// A number of 64-bit range, signed or not, or a real one; as an f32 it was rounded once, from the text.
struct Number {
  enum class Kind : uint8_t { integer, unsigned_integer, real };
  uint64_t bits = 0;  // of an integer
  double real = 0;    // of any number
  float single = 0;
  Kind kind = Kind::integer;

  static Number of(int64_t value);
  static Number of(uint64_t value);
  static Number of(double value, const std::string& text);
  static std::optional<Number> from_word(const std::string& word);  // the bare words that Repair has quoted

  // Nothing when the number is not of that kind.
  std::optional<uint64_t> as_unsigned() const;
  std::optional<int64_t> as_signed() const;
  std::optional<float> as_single() const;
};

using Scalar = std::variant<std::monostate, bool, Number, std::string>;  // monostate: null

// As messages show it: strings in quotes, cut after 80 bytes.
std::string show(const Scalar& scalar);

// The number that a scalar is, bare words included.
std::optional<Number> number_of(const Scalar& scalar);

// Position of a byte as "line L, column C".
std::string line_and_column(std::string_view text, size_t position);

}  // namespace lamina::json
