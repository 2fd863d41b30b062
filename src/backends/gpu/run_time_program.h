// A program of NVRTC or hipRTC. Their functions have the same parameters, and equal names after the prefix.
#pragma once

#include <string>
#include <vector>

#include "interface/status.h"

namespace lamina::gpu {

// Throws Error(runtime_error) with the function's name and its result.
template <typename Api>
void check(const Api& api, int result, const std::string& function) {
  if (result != 0) throw Error(Status::runtime_error, join(Api::name, ": ", function, " failed: ", api.error_string(result)));
}

// `Api`: the table of the compiler's functions, with its `name`, the `prefix` of its functions and the type `Program`.
template <typename Api>
class RunTimeProgram {
 public:
  RunTimeProgram(const Api& api, const std::string& file, const std::string& text) : api_(api) {
    check(api, api.create_program(&program_, text.c_str(), file.c_str(), 0, nullptr, nullptr),
          join(Api::prefix, "CreateProgram"));
  }
  ~RunTimeProgram() { api_.destroy_program(&program_); }
  RunTimeProgram(const RunTimeProgram&) = delete;
  RunTimeProgram& operator=(const RunTimeProgram&) = delete;

  // Throws Error(runtime_error) with the compiler's log.
  void compile(const std::string& symbol, const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    const int result = api_.compile_program(program_, static_cast<int>(pointers.size()), pointers.data());
    if (result != 0)
      throw Error(Status::runtime_error, join("bug in lamina: ", Api::name, " does not compile ", symbol, ": ",
                                              api_.error_string(result), "\n", log()));
  }
  std::string log() const { return read(api_.log_size, api_.log); }
  std::string read(int (*size_of)(typename Api::Program, size_t*), int (*text_of)(typename Api::Program, char*)) const {
    size_t size = 0;
    check(api_, size_of(program_, &size), "a query of a size");
    std::string text(size, '\0');
    check(api_, text_of(program_, text.data()), "a query");
    return text;
  }

 private:
  const Api& api_;
  typename Api::Program program_ = nullptr;
};

}  // namespace lamina::gpu
