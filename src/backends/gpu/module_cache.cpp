#include "backends/gpu/module_cache.h"

namespace lamina::gpu {

LoadedModule ModuleCache::get(const std::string& text, const std::function<LoadedModule()>& make) {
  const std::shared_ptr<Entry> entry = entry_of(text);
  const std::lock_guard lock(entry->making);
  if (entry->module != nullptr) return {entry->module, true};
  LoadedModule made = make();
  entry->module = made.module;
  return made;
}

std::shared_ptr<ModuleCache::Entry> ModuleCache::entry_of(const std::string& text) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(text);
  if (found != entries_.end()) return found->second;
  drop_unused();
  return entries_.emplace(text, std::make_shared<Entry>()).first->second;
}

// No thread is in `get` for an entry that only the map references, so its module may be read.
void ModuleCache::drop_unused() {
  if (entries_.size() < kCapacity) return;
  std::erase_if(entries_,
                [](const auto& entry) { return entry.second.use_count() == 1 && entry.second->module.use_count() <= 1; });
}

}  // namespace lamina::gpu
