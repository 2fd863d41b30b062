// In:    a fusion group of a graph whose shapes, strides and dtypes are all known.
// Out:   one kernel, and the graph value behind each of its args.
// Keeps: values; only what somebody outside the group needs is stored.
#pragma once

#include <span>
#include <vector>

#include "interface/graph.h"
#include "kernels/kernel_ir.h"
#include "passes/fuse.h"

namespace lamina::kernel {

struct LoweredKernel {
  Kernel kernel;
  std::vector<ValueIndex> args;  // per kernel arg; kNoValue: the kernel's own table
};

// `needed` flags the values of the graph that must be in memory afterwards.
LoweredKernel lower(const Graph& graph, const FusionGroup& group, const std::vector<bool>& needed);

bool has_lowering(OpKind kind);

}  // namespace lamina::kernel
