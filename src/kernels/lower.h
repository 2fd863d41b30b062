// In:    a fusion group of a graph whose shapes, strides and dtypes are all known.
// Out:   one kernel, and the graph value of each of its args. There are several kernels for a reshape between two strided
//        tensors, and for sums over other dims than the outer dims of the nest (remaining_sums.h).
// Keeps: values. Only values that are needed outside the group are stored.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "interface/graph.h"
#include "interface/indices.h"
#include "kernels/kernel_ir.h"
#include "passes/fusion/fuse.h"

namespace lamina::kernel {

// Memory between the kernels of one group: kTemporary, kTemporary - 1, ... The kernel that writes a temporary precedes its
// readers.
inline constexpr ValueIndex kTemporary = -2;

// What must hold before a kernel runs: the indices in memory are entries of an axis of `extent`. With an order, they are sorted
// too, into a temporary that no kernel writes.
struct IndexCheck {
  Op op;  // for the error
  ValueIndex indices = kNoValue;
  int64_t extent = 0;
  std::optional<IndexOrder> order = std::nullopt;
  ValueIndex sorted = kNoValue;
};

struct LoweredKernel {
  Kernel kernel;
  std::vector<ValueIndex> args;  // per kernel arg; kNoValue: a table inside the kernel
  Dims offsets;                  // per kernel arg, in elements from the value's first element; empty: all 0
  std::vector<IndexCheck> checks = {};
};

// `needed` flags the values of the graph that must be in memory afterwards. `sums_segments`: kernels may have segment sums.
// Kernels run in order.
std::vector<LoweredKernel> lower(const Graph& graph, const FusionGroup& group, const std::vector<bool>& needed,
                                 bool sums_segments = false);

// The kernels of an op that only copies (FusionGroup::opaque_copy): a reshape without common dims, or a concatenation.
std::vector<LoweredKernel> lower_copies(const Graph& graph, const Op& op);

bool has_lowering(OpKind kind);

}  // namespace lamina::kernel
