// The programs that a device has loaded, by their text, which is their structure.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backends/gpu/device.h"
#include "handles/locks.h"

namespace lamina::gpu {

// Thread-safe. A text is compiled once, by the first thread that asks for it; threads with other texts compile meanwhile.
class ModuleCache {
 public:
  // Programs that no kernel uses are dropped where there are this many programs.
  static constexpr size_t kCapacity = 1024;

  // The program of `text`, made by `make` where there is none. Throws what `make` throws; the next caller then tries again.
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
