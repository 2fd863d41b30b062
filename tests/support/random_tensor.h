// Reproducible random numbers for tests.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace lamina::testing {

class RandomTensor {
 public:
  explicit RandomTensor(unsigned seed) : engine_(seed) {}

  std::vector<double> uniform(size_t count, double low, double high) {
    std::vector<double> values(count);
    // std::uniform_real_distribution is not used: its numbers differ between standard libraries.
    for (double& value : values) value = low + (high - low) * (static_cast<double>(engine_()) / 4294967296.0);
    return values;
  }

 private:
  std::mt19937 engine_;
};

}  // namespace lamina::testing
