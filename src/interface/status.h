// Errors inside the library: an exception that carries the status code of the C ABI, one sentence and, if it concerns an op,
// which one. The ABI boundary (api/boundary.h) turns it into a return code plus lamina_last_error(). Only a reader or the
// driver catches it before, to prefix a file name.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lamina {

// Values equal oneDNN's dnnl_status_t.
enum class Status : int {
  success = 0,
  out_of_memory = 1,
  invalid_arguments = 2,
  unimplemented = 3,
  last_impl_reached = 4,
  runtime_error = 5,
  not_required = 6,
  invalid_graph = 7,
  invalid_graph_op = 8,
  invalid_shape = 9,
  invalid_data_type = 10,
  index_out_of_range = 512,  // of lamina alone
};

enum class OpKind : int;  // interface/op.h

// The op of a graph that an error concerns.
struct OpPlace {
  uint64_t id = 0;
  OpKind kind{};
  std::string name;
  std::string part = {};  // its port or attribute: "input src", "attribute axis"; empty: the op as a whole
};

// `LayerNorm "ln0"`: how messages name an op.
std::string describe(const OpPlace& place);

class Error : public std::exception {
 public:
  Error(Status status, std::string message) : status_(status), what_(std::move(message)) {}
  // what() is `KIND "name": message`.
  Error(Status status, OpPlace place, std::string_view message);

  Status status() const { return status_; }
  const std::optional<OpPlace>& place() const { return place_; }
  std::string_view message() const { return std::string_view(what_).substr(message_at_); }  // without the place prefix
  const char* what() const noexcept override { return what_.c_str(); }

  // The same error as readers of a file report it: `FILE: op ID (KIND "name"): message`, or `FILE: message` if the error
  // concerns no op.
  Error in_file(std::string_view file) const;

 private:
  Status status_;
  std::string what_;
  size_t message_at_ = 0;
  std::optional<OpPlace> place_;
};

namespace detail {

// Numbers are formatted as by a stream in the classic locale, independent of the process's locale.
void append(std::string& text, std::string_view part);
void append(std::string& text, const char* part);
void append(std::string& text, char part);
void append(std::string& text, double part);  // six significant digits
void append_signed(std::string& text, int64_t part);
void append_unsigned(std::string& text, uint64_t part);

template <std::integral T>
void append(std::string& text, T part) {
  static_assert(!std::same_as<T, unsigned char> && !std::same_as<T, signed char>, "a byte: a number or a letter?");
  if constexpr (std::signed_integral<T>)
    append_signed(text, part);
  else
    append_unsigned(text, part);
}

}  // namespace detail

// Concatenates the text of all arguments, numbers in decimal: join("axis is ", 3).
template <typename... Parts>
std::string join(const Parts&... parts) {
  std::string text;
  (detail::append(text, parts), ...);
  return text;
}

// Throws Status::runtime_error with a sentence that reports a bug in lamina: a broken invariant is not the caller's fault.
[[noreturn]] void fail_check(const char* condition, const char* file, int line, const std::string& detail);

#define LAMINA_CHECK(condition, detail)                                             \
  do {                                                                              \
    if (!(condition)) ::lamina::fail_check(#condition, __FILE__, __LINE__, detail); \
  } while (false)

}  // namespace lamina
