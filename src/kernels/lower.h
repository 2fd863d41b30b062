// In:    a fusion group of a graph whose shapes, strides and dtypes are all known.
// Out:   one kernel, and the graph value behind each of its args. More than one: a reshape between two strided tensors; sums
// over
//        other dims than the nest's outer ones (lower_group), which walk the tensors once more.
// Keeps: values; only what somebody outside the group needs is stored.
#pragma once

#include <span>
#include <vector>

#include "interface/graph.h"
#include "kernels/kernel_ir.h"
#include "passes/fusion/fuse.h"

namespace lamina::kernel {

// Memory between the kernels of one group: kTemporary, kTemporary - 1, ... The kernel that writes one comes first.
inline constexpr ValueIndex kTemporary = -2;

struct LoweredKernel {
  Kernel kernel;
  std::vector<ValueIndex> args;  // per kernel arg; kNoValue: the kernel's own table
  Dims offsets;                  // per kernel arg, in elements from the value's first; empty: all 0
};

// `needed` flags the values of the graph that must be in memory afterwards. Kernels run in order.
std::vector<LoweredKernel> lower(const Graph& graph, const FusionGroup& group, const std::vector<bool>& needed);

// The kernels of an op that is copies only (FusionGroup::opaque_copy): a reshape without common dims, a concatenation.
std::vector<LoweredKernel> lower_copies(const Graph& graph, const Op& op);

bool has_lowering(OpKind kind);

}  // namespace lamina::kernel
