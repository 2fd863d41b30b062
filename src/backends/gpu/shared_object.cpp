#include "backends/gpu/shared_object.h"

#include <dlfcn.h>

#include "interface/status.h"

namespace lamina::gpu {

SharedObject::SharedObject(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      opened_ = name;
      return;
    }
    error_ += (error_.empty() ? "" : ", ") + name;
  }
  error_ = "not found: " + error_;
}

void* SharedObject::symbol(const char* name) {
  void* const address = handle_ == nullptr ? nullptr : dlsym(handle_, name);
  if (address == nullptr && handle_ != nullptr) error_ = join(opened_, " has no function ", name);
  return address;
}

}  // namespace lamina::gpu
