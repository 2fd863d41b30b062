// The library ops of the CPU backend, one family per file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/library/primitive_library.h"
#include "interface/graph.h"
#include "kernels/plan.h"

namespace lamina::cpu {

inline constexpr LibraryCapabilities::PostOpLimits kPostOpLimits{.ops = 8, .operands = 4};

struct LibraryOp {
  OpKind kind;
  // Called with every shape, stride and type known, and with elements in every port of the step. Returns null if the next
  // library of the list must run the step. Throws Error.
  std::unique_ptr<const Primitive> (*compile)(const kernel::LibraryStep& step, const PrimitiveUse& use);
  // Returns "", or why this op cannot run with any shapes, in one sentence without the op's name. Shapes may be unknown.
  // Null: it can always run.
  std::string (*why_not)(const Graph& graph, const Op& op) = nullptr;
  bool (*is_fast_in)(DataType dtype) = nullptr;  // whether this machine has fast code for tensors of bf16 or f16; null: it has
  bool (*takes_integers)() = nullptr;            // LibraryCapabilities::takes_integers; null: it does not
  bool dequantizes_weights = false;              // LibraryCapabilities::dequantizes_weights
  bool multiplies_quantized_rows = false;        // LibraryCapabilities::multiplies_quantized_rows
  // LibraryCapabilities::takes_post_op and its limits, after ops of integers if takes_integers; null: none.
  std::optional<LibraryCapabilities::PostOpSupport> (*takes_post_op)(const Op& op) = nullptr;
  // Of a convolution in groups of few channels: whether the code of a primitive with this name, on a machine with such
  // vectors, is slower than generated code. Null: none is.
  bool (*is_slow_for_groups)(const std::string& name, int vector_bits) = nullptr;
  bool (*is_faster)(const Graph& graph, const Op& op) = nullptr;  // than the op's kernel; null: it is not
};

// By lamina's own loops.
std::vector<LibraryOp> window_ops();
std::vector<LibraryOp> along_axis_ops();
// By generated code: products of f32 and f64, by weights of 4 and 8 bits, and of groups of rows.
std::vector<LibraryOp> product_ops();
// Of bf16 and f16, which are converted to f32, and of integers.
std::vector<LibraryOp> converted_product_ops();
// Convolutions: where this is as fast as oneDNN, or oneDNN has none; and all.
std::vector<LibraryOp> fast_convolution_ops();
std::vector<LibraryOp> convolution_ops();
// By oneDNN; empty if lamina is built without it.
std::vector<LibraryOp> onednn_ops();

}  // namespace lamina::cpu
