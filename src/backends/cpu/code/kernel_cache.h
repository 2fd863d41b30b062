// A cache of compiled kernels by structure with a limited number of entries. A new kernel replaces the least recently used
// one, whose code is freed with the last executable that uses it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/cpu/code/jit.h"

namespace lamina::cpu {

// Not thread-safe.
class KernelCache {
 public:
  explicit KernelCache(size_t most) : most_(most) {}

  std::optional<CompiledCode> find(const std::string& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return std::nullopt;
    found->second.last_used = ++lookups_;
    return found->second.kernel;
  }

  // If the cache is full, searches all entries, which takes a thousandth of the time of a compilation.
  void insert(const std::string& key, CompiledCode kernel) {
    if (entries_.size() >= most_) {
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const auto& a, const auto& b) { return a.second.last_used < b.second.last_used; }));
    }
    entries_.emplace(key, Entry{std::move(kernel), ++lookups_});
  }

 private:
  struct Entry {
    CompiledCode kernel;
    uint64_t last_used;
  };
  size_t most_;
  uint64_t lookups_ = 0;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace lamina::cpu
