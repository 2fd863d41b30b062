// What a backend that runs plans supports, and which ops can therefore become steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "interface/graph.h"
#include "passes/core/capabilities.h"

namespace lamina::kernel {

struct PlanTarget {
  std::string_view name;                                   // of the backend, for messages
  size_t alignment = 64;                                   // of values in the arena, in bytes; a power of two
  bool reads_four_bits = false, writes_four_bits = false;  // kernels with s4 and u4, two elements per byte
  // The size of the tiles of tiled steps: the bytes of a thread's cache, the same on all machines, because sums depend on it.
  // 0: the backend runs no tiled steps.
  int64_t tile_bytes = 0;
  // an additional kernel costs less than computing shared values in every row
  bool computes_ahead = false;
  bool sums_segments = false;                    // runs segment sums (kernel_ir.h)
  bool copies_in_words = false;                  // reads and writes 32-bit words at any byte address
  const LibraryCapabilities* library = nullptr;  // null if the backend has no primitive library
};

// Returns "" if the op can be lowered to a kernel, else one sentence that says why not and names the backend.
std::string why_no_kernel(const Graph& graph, const Op& op, const PlanTarget& target);

// Returns "" if the op can be a step of a plan, in a kernel or by the library, else why not.
std::string why_no_step(const Graph& graph, const Op& op, const PlanTarget& target);

}  // namespace lamina::kernel
