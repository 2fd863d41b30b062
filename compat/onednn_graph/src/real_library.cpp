#include "real_library.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "locks.h"

namespace onednn_graph {
namespace {

const void* base_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// Finds a symbol in a library other than this one.
void* symbol_of_another(void* handle, const char* name) {
  static const char inside = 0;
  void* const found = dlsym(handle, name);
  return found != nullptr && base_of(found) != base_of(&inside) ? found : nullptr;
}

// Looks up all functions in one library; returns false if one is missing.
bool fill(RealLibrary& library, void* handle) {
  bool complete = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol_of_another(handle, name));
    complete = complete && function != nullptr;
  };
#define ONEDNN_FIND(name) find(library.name, "dnnl_" #name);
  ONEDNN_REAL_FUNCTIONS(ONEDNN_FIND)
#undef ONEDNN_FIND
  return complete;
}

std::vector<std::string> names_of_loaded_libraries() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* list) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] != '\0')
          static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

// RTLD_NEXT finds libraries that were loaded with the program. A library loaded later with local scope, by a plug-in or a
// Python module, is found by its file name.
bool find_library(RealLibrary& library) {
  if (fill(library, RTLD_NEXT)) return true;
  for (const std::string& name : names_of_loaded_libraries()) {
    if (name.find("dnnl") == std::string::npos) continue;
    void* const handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr && fill(library, handle)) return true;  // the handle is kept, so that the library stays loaded
    if (handle != nullptr) dlclose(handle);
  }
  return false;
}

}  // namespace

const RealLibrary* real_library() {
  static std::atomic<const RealLibrary*> found{nullptr};
  if (const RealLibrary* const known = found.load(std::memory_order_acquire)) return known;
  static lamina::Mutex mutex(lamina::LockRow::front_end);
  static RealLibrary library;
  const std::lock_guard lock(mutex);
  if (found.load(std::memory_order_relaxed) == nullptr && find_library(library))
    found.store(&library, std::memory_order_release);
  return found.load(std::memory_order_relaxed);
}

}  // namespace onednn_graph
