// The programs that a device has loaded, by their text, which is their structure.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backends/gpu/device.h"

namespace lamina::gpu {

// Thread-safe. A text is compiled once, by the first thread that asks for it; threads with other texts compile meanwhile.
class ModuleCache {
 public:
  // Programs that no kernel uses are dropped where there are this many programs.
  static constexpr size_t kCapacity = 1024;

  // The program of `text`, made by `make` where there is none. Throws what `make` throws; the next caller then tries again.
  LoadedModule get(const std::string& text, const std::function<LoadedModule()>& make);

 private:
  void drop_unused();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, std::shared_ptr<const Module>> modules_;  // null while it is made
};

}  // namespace lamina::gpu
