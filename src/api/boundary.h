// The boundary of the C ABI, which no exception crosses. Inside, errors are exceptions (interface/status.h); outside, they
// are a status code and one sentence per thread.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "graph/lamina.h"
#include "interface/status.h"

namespace lamina::api {

// Stores the sentence for lamina_last_error() and returns `status` as the C ABI's type. Allocates nothing.
lamina_status_t remember_error(Status status, std::string_view sentence) noexcept;

[[noreturn]] void fail_null(const char* function, const char* argument);

// Throws for null, with a sentence that names the function and the argument.
inline void require(const void* pointer, const char* function, const char* argument) {
  if (pointer == nullptr) fail_null(function, argument);
}

// Runs `body` and converts an exception to a status and the thread's last error.
template <typename Body>
lamina_status_t guarded(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return lamina_success;
  } catch (const Error& error) {
    return remember_error(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return remember_error(Status::out_of_memory, "out of memory");
  } catch (const std::exception& error) {
    return remember_error(Status::runtime_error, error.what());
  } catch (...) {
    return remember_error(Status::runtime_error, "unknown exception: this is a bug in lamina");
  }
}

// Calls require() with the name of the API function.
#define LAMINA_REQUIRE(argument) ::lamina::api::require(argument, function_name, #argument)

}  // namespace lamina::api
