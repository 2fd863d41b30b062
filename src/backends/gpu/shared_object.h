// A shared library opened at run time, and its functions by name.
#pragma once

#include <string>
#include <vector>

#include "interface/status.h"

namespace lamina::gpu {

// Where a vendor's libraries may be: in the folders that environment variables name, and in the usual one.
struct Toolkit {
  std::vector<const char*> variables;
  const char* usual_folder;
};

// File names of a library, in search order: by the loader's path, then in the toolkit's folders.
std::vector<std::string> names_of_library(const std::string& stem, const std::vector<std::string>& versions,
                                          const Toolkit& toolkit);

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

// The functions of a library, which stays open.
template <typename Api>
class LoadedApi {
 public:
  // find(library, table) fills the table and returns whether the library has all of its functions. `what` names the library
  // in messages.
  template <typename Find>
  LoadedApi(const char* what, const std::vector<std::string>& names, Find find) : library_(names) {
    if (!library_.is_open() || !find(library_, table_)) fault_ = join(what, ": ", library_.error());
  }
  const Api* table(std::string& why) const {
    why = fault_;
    return fault_.empty() ? &table_ : nullptr;
  }

 private:
  SharedObject library_;
  Api table_;
  std::string fault_;
};

}  // namespace lamina::gpu
