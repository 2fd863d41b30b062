// What a backend that runs plans supports, and which ops can therefore become steps.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "interface/graph.h"
#include "passes/tiling/quantized_product.h"

namespace lamina::kernel {

struct PlanTarget {
  std::string_view name;                                   // of the backend, for messages
  size_t alignment = 64;                                   // of values in the arena, in bytes; a power of two
  bool reads_four_bits = false, writes_four_bits = false;  // kernels with s4 and u4, two elements per byte
  bool tiles = false;                                      // runs tiled steps
  IntegerSupport integers = {};                            // library steps of quantized products
  // an additional kernel costs less than computing shared values in every row
  bool computes_ahead = false;
  bool copies_in_words = false;  // reads and writes 32-bit words at any byte address
  // Returns "" if a primitive library of the backend runs the op on whole tensors, else one sentence that says why not. Null
  // if the backend has no such library.
  std::function<std::string(const Graph& graph, const Op& op)> why_no_library_step = nullptr;
};

// Returns "" if the op can be lowered to a kernel, else one sentence that says why not and names the backend.
std::string why_no_kernel(const Graph& graph, const Op& op, const PlanTarget& target);

// Returns "" if the op can be a step of a plan, in a kernel or by the library, else why not.
std::string why_no_step(const Graph& graph, const Op& op, const PlanTarget& target);

}  // namespace lamina::kernel
