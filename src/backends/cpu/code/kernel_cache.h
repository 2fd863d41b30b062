// Compiled kernels by their structure, as many as may be: in the place of one more goes the one that nobody has asked for the
// longest. Its code goes with the last executable that holds it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/cpu/code/jit.h"

namespace lamina::cpu {

// For one thread at a time.
class KernelCache {
 public:
  explicit KernelCache(size_t most) : most_(most) {}

  std::optional<CompiledKernel> find(const std::string& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return std::nullopt;
    found->second.last_used = ++lookups_;
    return found->second.kernel;
  }

  // Looks at all of them where there are too many, which takes a thousandth of the time that compiling does.
  void insert(const std::string& key, CompiledKernel kernel) {
    if (entries_.size() >= most_) {
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const auto& a, const auto& b) { return a.second.last_used < b.second.last_used; }));
    }
    entries_.emplace(key, Entry{std::move(kernel), ++lookups_});
  }

 private:
  struct Entry {
    CompiledKernel kernel;
    uint64_t last_used;
  };
  size_t most_;
  uint64_t lookups_ = 0;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace lamina::cpu
