// The programs that a device has loaded, with their text as the key.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backends/gpu/device.h"
#include "handles/locks.h"

namespace lamina::gpu {

// Thread-safe. The first thread that requests a text compiles it. Threads with other texts compile at the same time.
class ModuleCache {
 public:
  // From this number of programs on, those that no kernel uses are dropped.
  static constexpr size_t kCapacity = 1024;

  // Returns the program of `text`, created by `make` if it is missing. Throws what `make` throws; the next caller then tries
  // again.
  LoadedModule get(const std::string& text, const std::function<LoadedModule()>& make);

 private:
  struct Entry {
    Mutex making{LockRow::gpu_code};  // held while the program is compiled
    std::shared_ptr<const Module> module;
  };
  std::shared_ptr<Entry> entry_of(const std::string& text);
  void drop_unused();

  Mutex mutex_{LockRow::gpu_programs};
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace lamina::gpu
