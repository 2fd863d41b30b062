#include "api/boundary.h"

#include <algorithm>
#include <cstring>

namespace lamina::api {

namespace {

// A fixed buffer: recording that memory ran out must not allocate memory.
struct LastError {
  char text[4096];
};
thread_local LastError last_error{};

constexpr lamina_version_t kVersion{LAMINA_VERSION_MAJOR, LAMINA_VERSION_MINOR, LAMINA_VERSION_PATCH};

}  // namespace

void remember_error(std::string_view sentence) noexcept {
  const size_t length = std::min(sentence.size(), sizeof last_error.text - 1);
  std::memcpy(last_error.text, sentence.data(), length);
  last_error.text[length] = '\0';
}

void fail_null(const char* function, const char* argument) {
  throw Error(Status::invalid_arguments, join(function, ": argument ", argument, " is null; a valid pointer is needed"));
}

}  // namespace lamina::api

extern "C" const char* lamina_last_error(void) { return lamina::api::last_error.text; }

extern "C" void lamina_set_last_error(const char* sentence) {
  lamina::api::remember_error(sentence == nullptr ? "" : sentence);
}

extern "C" const lamina_version_t* lamina_version(void) { return &lamina::api::kVersion; }
