// The library ops that the CPU backend runs, a family a file.
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
  // Called with every shape, stride and type known and no port of the step without elements. Throws Error.
  std::unique_ptr<const Primitive> (*compile)(const kernel::LibraryStep& step, const PrimitiveUse& use);
  // "" or why this op cannot run whatever its shapes, one sentence without the op's name; shapes may be unknown. Null: it can.
  std::string (*why_not)(const Graph& graph, const Op& op) = nullptr;
  // Whether this machine has fast code for tensors of bf16 or f16; where it has none the op runs as f32. Null: for all.
  bool (*is_fast_in)(DataType dtype) = nullptr;
  bool takes_empty_inputs = false;  // compile knows what to do with inputs without elements
};

// By loops of lamina's own.
std::vector<LibraryOp> pool_ops();
std::vector<LibraryOp> interpolate_ops();
std::vector<LibraryOp> indexed_ops();
// By oneDNN; none where lamina is built without it.
std::vector<LibraryOp> onednn_ops();
bool onednn_multiplies_integers();
bool onednn_convolves_integers();

}  // namespace lamina::cpu
