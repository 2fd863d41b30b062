// A shared library opened at run time, and its functions by name.
#pragma once

#include <string>
#include <vector>

namespace lamina::gpu {

class SharedObject {
 public:
  // Opens the first of `names` that can be opened. If none can, handle() is null and error() says what was tried.
  explicit SharedObject(const std::vector<std::string>& names);
  bool is_open() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  const std::string& opened() const { return opened_; }
  // Returns false and sets error() if the library has no such function.
  template <typename Function>
  bool find(const char* name, Function& function) {
    void* const address = symbol(name);
    if (address == nullptr) return false;
    function = reinterpret_cast<Function>(address);
    return true;
  }

 private:
  void* symbol(const char* name);
  void* handle_ = nullptr;  // never closed, because drivers do not support it
  std::string error_, opened_;
};

}  // namespace lamina::gpu
