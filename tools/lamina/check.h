// Compares a backend's results with the float64 reference on the same inputs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lamina/buffer.h"
#include "passes/extract_subgraph.h"

namespace lamina::driver {

// The element with the largest error relative to its tolerance.
struct WorstElement {
  uint64_t tensor_id = 0;
  Dims at;
  double given = 0;
  double expected = 0;
  double error = 0;       // |given - expected|
  double of_allowed = 0;  // error / allowed error; above 1: wrong
};

struct CheckResult {
  bool good = true;
  int64_t elements = 0;
  int64_t failed = 0;    // elements outside the tolerance
  int64_t forgiven = 0;  // failed elements that are accepted because an op jumps
  int64_t left_out = 0;  // not checked: they depend on the rounding of a value between two ops
  WorstElement worst;
  std::string text() const;  // one phrase for the table
};

CheckResult check_partition(const Subgraph& subgraph, std::span<const void* const> inputs,
                            std::span<const std::shared_ptr<Buffer>> outputs);

// Adds another partition's result to that of a file.
void merge(CheckResult& total, const CheckResult& part);

}  // namespace lamina::driver
