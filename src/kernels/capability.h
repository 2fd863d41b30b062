// What a backend that runs plans offers to the planner, and which ops can therefore become steps.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "interface/graph.h"
#include "passes/tiling/quantized_product.h"

namespace lamina::kernel {

struct PlanTarget {
  std::string_view name;                                   // of the backend, for sentences
  size_t alignment = 64;                                   // of what lies in the arena, in bytes; a power of two
  bool reads_four_bits = false, writes_four_bits = false;  // kernels with s4 and u4, two elements a byte
  bool tiles = false;                                      // runs tiled steps
  IntegerSupport integers = {};                            // library steps of quantized products
  bool computes_ahead = false;                             // another kernel costs less than what all rows share in each row
  bool copies_in_words = false;                            // reads and writes words of 32 bits that begin at any byte
  // "" when a primitive library of the backend runs the op on whole tensors, else why not, one sentence. Null: it has none.
  std::function<std::string(const Graph& graph, const Op& op)> why_no_library_step = nullptr;
};

// "" when a kernel can be made of the op, else why not, one sentence that names the backend.
std::string why_no_kernel(const Graph& graph, const Op& op, const PlanTarget& target);

// "" when the op can be a step of a plan, in a kernel or by the library, else why not.
std::string why_no_step(const Graph& graph, const Op& op, const PlanTarget& target);

}  // namespace lamina::kernel
