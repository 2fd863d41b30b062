// The boundary of the C ABI, which no exception crosses. Inside, errors are exceptions (interface/status.h); outside, they
// are a status code and one sentence per thread.
#pragma once

#include <string_view>
#include <utility>

#include "graph/lamina.h"
#include "interface/call_status.h"
#include "interface/status.h"

namespace lamina::api {

// Stores the sentence for lamina_last_error(). Allocates nothing.
void remember_error(std::string_view sentence) noexcept;

[[noreturn]] void fail_null(const char* function, const char* argument);

// Throws for null, with a sentence that names the function and the argument.
inline void require(const void* pointer, const char* function, const char* argument) {
  if (pointer == nullptr) fail_null(function, argument);
}

// Runs `body` and converts an exception to a status and the thread's last error.
template <typename Body>
lamina_status_t guarded(Body&& body) noexcept {
  return static_cast<lamina_status_t>(status_of_call(std::forward<Body>(body), remember_error));
}

// Calls require() with the name of the API function.
#define LAMINA_REQUIRE(argument) ::lamina::api::require(argument, function_name, #argument)

}  // namespace lamina::api
