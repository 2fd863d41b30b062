// Runs a graph in double and keeps the results unrounded: what the checker measures other backends against, in ULP.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/reference/tensor.h"
#include "interface/graph.h"

namespace lamina::reference {

// `inputs` and `outputs` are value indices of a finalized graph whose shapes are all known; `memory` holds the inputs as their
// logical tensors lay them out (null is legal without elements). Returns one dense tensor an output, not rounded to its float
// dtype. Throws Error(unimplemented) naming the op that the reference cannot run.
// `disturb`, where there is one, may change an input, or what an op has made (`maker`, null of an input), before others read
// it: how far results are from each other when what they are made of is, tells how much of an error is none.
using Disturb = std::function<void(const Op* maker, ValueIndex value, Tensor& tensor)>;
std::vector<Tensor> run(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs,
                        std::span<const void* const> memory, const Disturb& disturb = nullptr);

// Whether ops of the kind have a loop here; a single one may still be refused.
bool has_loop(OpKind kind);

// "" when the reference knows the op, else why not, one sentence without the op's name.
std::string why_unsupported(const Graph& graph, const Op& op);

}  // namespace lamina::reference
