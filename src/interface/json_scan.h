// Tells the tokens of a JSON text to a listener, one after the other: nothing recurses and nothing is copied. What dumps contain
// though JSON forbids it is taken: bare infinities and NaNs as numbers, raw control characters inside strings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interface/json_tokens.h"

namespace lamina::json {

// Views of text are good until the next call.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void start_object() = 0;
  virtual void start_array() = 0;
  virtual void end() = 0;  // of the innermost object or array
  virtual void key(std::string_view name) = 0;
  virtual void scalar(const Scalar& value) = 0;
};

struct SyntaxError {
  size_t position;  // of the byte at fault
  std::string what;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // Throws SyntaxError, and whatever the listener throws.
  void run(Listener& listener);

 private:
  enum class Expected { value, value_or_end, key, key_or_end, comma_or_end, nothing };

  void skip_blanks();
  Expected token(Listener& listener, Expected expected);
  Expected value(Listener& listener, Expected expected);
  Expected close(Listener& listener);
  Expected after_value() const { return open_.empty() ? Expected::nothing : Expected::comma_or_end; }
  Scalar scalar(Expected expected);
  bool take(std::string_view word);
  Number number();
  bool bare_number(Number& number);
  std::string_view string();
  void character();
  void escape();
  uint32_t four_hex_digits();
  [[noreturn]] void fail(const std::string& what) const { throw SyntaxError{at_, what}; }
  [[noreturn]] void fail_expected(Expected expected) const;

  std::string_view text_;
  size_t at_ = 0;
  std::string open_;       // the brackets that are to be closed, the innermost last
  std::string unescaped_;  // of the last string with an escape
};

}  // namespace lamina::json
