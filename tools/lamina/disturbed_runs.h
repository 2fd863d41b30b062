// Runs of the reference in which values differ from the exact ones by as much as an implementation may: what that changes in an
// output is no fault of the implementation.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/reference/tensor.h"
#include "lamina/tensor_check.h"
#include "passes/extract_subgraph.h"

namespace lamina::driver {

// By output of the subgraph.
struct Disturbed {
  std::vector<std::vector<double>> spreads;  // per element: the largest difference of some runs
  std::vector<Elements> poles;               // elements that have no number in one of them
};

// Every input is off by a last place, and every value between two ops by what the op that made it may be off.
Disturbed run_disturbed(const Subgraph& subgraph, std::span<const void* const> inputs,
                        std::span<const reference::Tensor> expected);

// Elements that cannot be judged, since they depend on a value between two ops that leaves the range of its type, or are what a
// comparison makes of values that are closer than their types tell apart. Empty where there are none.
std::vector<Elements> depend_on_storage(const Subgraph& subgraph, std::span<const void* const> inputs,
                                        std::span<const reference::Tensor> expected);

}  // namespace lamina::driver
