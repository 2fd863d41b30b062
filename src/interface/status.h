// Errors inside the library: an exception that carries the status code of the C ABI and one sentence. The ABI boundary
// (interface/c_api) turns it into a return code plus lamina_last_error(); nothing else catches it.
#pragma once

#include <exception>
#include <string>
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
};

class Error : public std::exception {
 public:
  Error(Status status, std::string message) : status_(status), message_(std::move(message)) {}
  Status status() const { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Status status_;
  std::string message_;
};

// Text of all arguments joined, numbers as decimal: join("axis is ", 3).
template <typename... Parts>
std::string join(const Parts&... parts);

// A broken invariant is a bug in lamina, not of the caller: throws Status::runtime_error and says so.
[[noreturn]] void fail_check(const char* condition, const char* file, int line, const std::string& detail);

#define LAMINA_CHECK(condition, detail)                                             \
  do {                                                                              \
    if (!(condition)) ::lamina::fail_check(#condition, __FILE__, __LINE__, detail); \
  } while (false)

}  // namespace lamina

#include <sstream>

template <typename... Parts>
std::string lamina::join(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}
