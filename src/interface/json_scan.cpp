#include "interface/json_scan.h"

#include <charconv>

#include "interface/status.h"

namespace lamina::json {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Bytes of the UTF-8 sequence that `text` begins with, 0 when it begins with none. Overlong forms and surrogates are none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(0), second = byte(1);
  size_t length = 1;
  if (first >= 0x80) {
    if (first < 0xc2 || first > 0xf4) return 0;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
    length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  }
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return length;
}

void append_utf8(std::string& to, uint32_t code) {
  const auto follow = [&](int shift) { to += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    to += static_cast<char>(code);
  } else if (code < 0x800) {
    to += static_cast<char>(0xc0 | code >> 6);
    follow(0);
  } else if (code < 0x10000) {
    to += static_cast<char>(0xe0 | code >> 12);
    follow(6);
    follow(0);
  } else {
    to += static_cast<char>(0xf0 | code >> 18);
    follow(12);
    follow(6);
    follow(0);
  }
}

}  // namespace

void Scanner::run(Listener& listener) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  Expected expected = Expected::value;
  for (;;) {
    skip_blanks();
    if (at_ == text_.size()) break;
    expected = token(listener, expected);
  }
  if (expected != Expected::nothing) fail_expected(expected);
}

void Scanner::skip_blanks() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}

void Scanner::fail_expected(Expected expected) const {
  const bool in_object = !open_.empty() && open_.back() == '}';
  const char* const what = expected == Expected::value          ? "a value"
                           : expected == Expected::value_or_end ? "a value or ]"
                           : expected == Expected::key          ? "a key in quotes"
                           : expected == Expected::key_or_end   ? "a key in quotes or }"
                           : expected == Expected::nothing      ? "the end"
                           : in_object                          ? ", or }"
                                                                : ", or ]";
  if (at_ >= text_.size()) fail(join("the text ends where ", what, " is expected"));
  const char c = text_[at_];
  if (c > ' ' && c <= '~') fail(join("'", c, "' stands where ", what, " is expected"));
  fail(join("byte ", static_cast<int>(static_cast<uint8_t>(c)), " stands where ", what, " is expected"));
}

Scanner::Expected Scanner::token(Listener& listener, Expected expected) {
  const char c = text_[at_];
  switch (expected) {
    case Expected::key_or_end:
      if (c == '}') return close(listener);
      [[fallthrough]];
    case Expected::key:
      if (c != '"') fail_expected(expected);
      listener.key(string());
      skip_blanks();
      if (at_ == text_.size() || text_[at_] != ':') fail("a key stands without the : that follows it");
      ++at_;
      return Expected::value;
    case Expected::value_or_end:
      if (c == ']') return close(listener);
      [[fallthrough]];
    case Expected::value:
      return value(listener, expected);
    case Expected::comma_or_end:
      if (c == open_.back()) return close(listener);
      if (c != ',') fail_expected(expected);
      ++at_;
      return open_.back() == '}' ? Expected::key : Expected::value;
    case Expected::nothing:
      break;
  }
  fail_expected(expected);
}

Scanner::Expected Scanner::close(Listener& listener) {
  ++at_;
  open_.pop_back();
  listener.end();
  return after_value();
}

Scanner::Expected Scanner::value(Listener& listener, Expected expected) {
  const char c = text_[at_];
  if (c == '{' || c == '[') {
    ++at_;
    open_ += c == '{' ? '}' : ']';
    if (c == '{') listener.start_object();
    else listener.start_array();
    return c == '{' ? Expected::key_or_end : Expected::value_or_end;
  }
  listener.scalar(scalar(expected));
  return after_value();
}

Scalar Scanner::scalar(Expected expected) {
  const char c = text_[at_];
  if (c == '"') return string();
  if (is_digit(c)) return number();
  if (take("true")) return true;
  if (take("false")) return false;
  if (take("null")) return std::monostate{};
  Number bare;
  if (bare_number(bare)) return bare;
  if (c == '-') return number();
  fail_expected(expected);
}

bool Scanner::take(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

// inf, nan and their like, as streams and languages write them.
bool Scanner::bare_number(Number& number) {
  const size_t begin = at_;
  const bool negative = text_[at_] == '-';
  if (negative || text_[at_] == '+') ++at_;
  for (const std::string_view word : {"infinity", "Infinity", "inf", "Inf", "nan", "NaN"}) {
    if (!take(word)) continue;
    number = word.ends_with('n') || word.ends_with('N') ? Number::not_a_number() : Number::infinity(negative);
    return true;
  }
  at_ = begin;
  return false;
}

Number Scanner::number() {
  const size_t begin = at_;
  const auto digits = [&] {
    const size_t first = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == first) fail("a number lacks a digit here");
  };
  if (text_[at_] == '-') ++at_;
  const bool leading_zero = at_ < text_.size() && text_[at_] == '0';
  const size_t first = at_;
  digits();
  if (leading_zero && at_ > first + 1) fail("a number begins with a 0 that means nothing");
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    digits();
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
    digits();
  }
  const auto value = Number::from_text(text_.substr(begin, at_ - begin));
  if (!value) fail(join("the number ", text_.substr(begin, std::min<size_t>(at_ - begin, 40)), " is out of the range of f64"));
  return *value;
}

// ---- strings

// The text itself up to the first escape, a copy from there on.
std::string_view Scanner::string() {
  const size_t begin = ++at_;
  const auto is_plain = [](char c) { return c != '"' && c != '\\' && static_cast<uint8_t>(c) < 0x80; };
  const auto skip_plain = [&] {
    while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  };
  char c = skip_plain();
  for (; at_ < text_.size() && c != '"' && c != '\\'; c = skip_plain()) character();
  if (c == '"') return text_.substr(begin, at_++ - begin);
  unescaped_.assign(text_.substr(begin, at_ - begin));
  while (at_ < text_.size()) {
    const size_t from = at_;
    c = skip_plain();
    unescaped_.append(text_.substr(from, at_ - from));
    if (at_ == text_.size()) break;
    if (c == '"') {
      ++at_;
      return unescaped_;
    }
    if (c == '\\') {
      escape();
      continue;
    }
    const size_t sequence = at_;
    character();
    unescaped_.append(text_.substr(sequence, at_ - sequence));
  }
  fail("the text ends inside a string");
}

void Scanner::character() {
  const size_t length = utf8_length(text_.substr(at_));
  if (length == 0) fail("a string holds bytes that are not UTF-8");
  at_ += length;
}

void Scanner::escape() {
  ++at_;
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const size_t letter = at_ < text_.size() ? kLetters.find(text_[at_]) : std::string_view::npos;
  if (letter != std::string_view::npos) {
    unescaped_ += kMeanings[letter];
    ++at_;
    return;
  }
  if (at_ == text_.size() || text_[at_] != 'u') fail("a \\ in a string begins no escape that JSON knows");
  ++at_;
  uint32_t code = four_hex_digits();
  const auto is_surrogate = [](uint32_t half, uint32_t first) { return half >= first && half < first + 0x400; };
  if (is_surrogate(code, 0xdc00)) fail("a \\u escape is the second half of a pair without the first");
  if (is_surrogate(code, 0xd800)) {
    const uint32_t second = take("\\u") ? four_hex_digits() : 0;
    if (!is_surrogate(second, 0xdc00)) fail("a \\u escape is the first half of a pair without the second");
    code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
  }
  append_utf8(unescaped_, code);
}

uint32_t Scanner::four_hex_digits() {
  const std::string_view digits = text_.substr(at_, 4);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4) fail("\\u lacks its four hexadecimal digits");
  at_ += 4;
  return code;
}

}  // namespace lamina::json
