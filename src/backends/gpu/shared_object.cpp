#include "backends/gpu/shared_object.h"

#include <dlfcn.h>

#include <cstdlib>

#include "interface/status.h"

namespace lamina::gpu {

std::vector<std::string> names_of_library(const std::string& stem, const std::vector<std::string>& versions,
                                          const Toolkit& toolkit) {
  std::vector<std::string> names;
  for (const std::string& version : versions) names.push_back(stem + ".so." + version);
  names.push_back(stem + ".so");
  std::vector<std::string> folders;
  for (const char* variable : toolkit.variables) {
    if (const char* const folder = std::getenv(variable)) folders.emplace_back(folder);
  }
  folders.emplace_back(toolkit.usual_folder);
  for (const std::string& folder : folders) {
    for (const char* sub : {"/lib64/", "/lib/"}) names.push_back(folder + sub + stem + ".so");
  }
  return names;
}

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
