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
class KeptKernels {
 public:
  explicit KeptKernels(size_t most) : most_(most) {}

  std::optional<CompiledKernel> find(const std::string& key) {
    const auto found = kept_.find(key);
    if (found == kept_.end()) return std::nullopt;
    found->second.asked = ++questions_;
    return found->second.kernel;
  }

  // Looks at all of them where there are too many, which takes a thousandth of the time that compiling does.
  void keep(const std::string& key, CompiledKernel kernel) {
    if (kept_.size() >= most_) {
      kept_.erase(std::min_element(kept_.begin(), kept_.end(),
                                   [](const auto& a, const auto& b) { return a.second.asked < b.second.asked; }));
    }
    kept_.emplace(key, Kept{std::move(kernel), ++questions_});
  }

 private:
  struct Kept {
    CompiledKernel kernel;
    uint64_t asked;
  };
  size_t most_;
  uint64_t questions_ = 0;
  std::unordered_map<std::string, Kept> kept_;
};

}  // namespace lamina::cpu
