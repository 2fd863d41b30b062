// The heavy ops that run through oneDNN, a family a file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/library/primitive_library.h"
#include "interface/graph.h"
#include "kernels/plan.h"

namespace lamina::cpu::onednn {

struct HeavyOp {
  OpKind kind;
  // Called with every shape, stride and type known and no port of the step without elements. Throws Error.
  std::unique_ptr<const Primitive> (*compile)(const kernel::LibraryStep& step, const PrimitiveUse& use);
  // "" or why this op cannot run whatever its shapes, one sentence without the op's name; shapes may be unknown. Null: it can.
  std::string (*why_not)(const Graph& graph, const Op& op) = nullptr;
};

std::vector<HeavyOp> matmul_ops();
std::vector<HeavyOp> convolution_ops();
std::vector<HeavyOp> pool_ops();
std::vector<HeavyOp> interpolate_ops();

}  // namespace lamina::cpu::onednn
