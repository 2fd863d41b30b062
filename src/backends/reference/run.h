// Runs a graph in double and keeps the results unrounded. The checker measures the error of other backends against them, in
// ULP.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/reference/tensor.h"
#include "interface/graph.h"

namespace lamina::reference {

// `inputs` and `outputs` are value indices of a finalized graph whose shapes are all known. `memory` contains the inputs in
// the layout of their logical tensors (null is valid without elements). Returns one dense tensor per output, not rounded to
// its float dtype; Tensor::unrounded contains integers, booleans and f8 before their rounding. Throws Error(unimplemented),
// which names the op, for an op that the reference cannot run.
// `disturb`, if given, may change an input or the result of an op (`maker`, null for an input) before other ops read it. The
// change of the results shows how much of an error rounding of inner values can explain.
using Disturb = std::function<void(const Op* maker, ValueIndex value, Tensor& tensor)>;
std::vector<Tensor> run(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs,
                        std::span<const void* const> memory, const Disturb& disturb = nullptr);

// Whether the reference implements ops of this kind. It may still refuse a particular op.
bool has_loop(OpKind kind);

// Returns "" if the reference supports the op, else one sentence without the op's name that says why not.
std::string why_unsupported(const Graph& graph, const Op& op);

}  // namespace lamina::reference
