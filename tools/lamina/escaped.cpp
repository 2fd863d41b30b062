#include "lamina/escaped.h"

namespace lamina::driver {

std::string escaped(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t') {
      result += c;
    } else {
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return result;
}

EscapedStream::int_type EscapedStream::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char c = traits_type::to_char_type(character);
  return xsputn(&c, 1) == 1 ? character : traits_type::eof();
}

std::streamsize EscapedStream::xsputn(const char* text, std::streamsize count) {
  const std::string safe = escaped({text, static_cast<size_t>(count)});
  const auto size = static_cast<std::streamsize>(safe.size());
  return target_->sputn(safe.data(), size) == size ? count : 0;
}

}  // namespace lamina::driver
