// The library ops of the CPU backend, one family per file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/library/primitive_library.h"
#include "interface/graph.h"
#include "kernels/plan.h"

namespace lamina::cpu {

struct LibraryOp {
  OpKind kind;
  // Called with every shape, stride and type known, and with elements in every port of the step. Throws Error.
  std::unique_ptr<const Primitive> (*compile)(const kernel::LibraryStep& step, const PrimitiveUse& use);
  // Returns "", or why this op cannot run with any shapes, in one sentence without the op's name. Shapes may be unknown.
  // Null: it can always run.
  std::string (*why_not)(const Graph& graph, const Op& op) = nullptr;
  // Whether this machine has fast code for tensors of bf16 or f16. Without it, the op runs as f32. Null: for all types.
  bool (*is_fast_in)(DataType dtype) = nullptr;
  bool takes_empty_inputs = false;  // compile supports inputs without elements
};

// By lamina's own loops.
std::vector<LibraryOp> pool_ops();
std::vector<LibraryOp> interpolate_ops();
std::vector<LibraryOp> indexed_ops();
// By oneDNN; empty if lamina is built without it.
std::vector<LibraryOp> onednn_ops();
bool onednn_multiplies_integers();
bool onednn_convolves_integers();

}  // namespace lamina::cpu
