#include "backends/gpu/module_cache.h"

namespace lamina::gpu {

LoadedModule ModuleCache::get(const std::string& text, const std::function<LoadedModule()>& make) {
  std::unique_lock lock(mutex_);
  for (auto found = modules_.find(text); found != modules_.end(); found = modules_.find(text)) {
    if (found->second != nullptr) return {found->second, true};
    changed_.wait(lock);
  }
  drop_unused();
  modules_.emplace(text, nullptr);
  lock.unlock();
  LoadedModule made;
  try {
    made = make();
  } catch (...) {
    lock.lock();
    modules_.erase(text);
    changed_.notify_all();
    throw;
  }
  lock.lock();
  modules_.at(text) = made.module;
  changed_.notify_all();
  return made;
}

void ModuleCache::drop_unused() {
  if (modules_.size() < kCapacity) return;
  std::erase_if(modules_, [](const auto& entry) { return entry.second.use_count() == 1; });
}

}  // namespace lamina::gpu
