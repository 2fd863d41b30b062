// In:    a fusion group of a graph whose shapes, strides and dtypes are all known.
// Out:   one kernel, and the graph value behind each of its args (a reshape between two strided tensors takes two kernels).
// Keeps: values; only what somebody outside the group needs is stored.
#pragma once

#include <span>
#include <vector>

#include "interface/graph.h"
#include "kernels/kernel_ir.h"
#include "passes/fuse.h"

namespace lamina::kernel {

inline constexpr ValueIndex kTemporary = -2;  // dense memory between the two kernels of one group

struct LoweredKernel {
  Kernel kernel;
  std::vector<ValueIndex> args;  // per kernel arg; kNoValue: the kernel's own table
};

// `needed` flags the values of the graph that must be in memory afterwards. Kernels run in order.
std::vector<LoweredKernel> lower(const Graph& graph, const FusionGroup& group, const std::vector<bool>& needed);

std::vector<LoweredKernel> lower_row_major_copy(const Graph& graph, const Op& reshape);

bool has_lowering(OpKind kind);

}  // namespace lamina::kernel
