// In:    the graph of a partition whose shapes, strides and dtypes are all known, its ports, and its fusion groups.
// Out:   the steps that compute it, in order, and where the memory behind each of their args comes from. The plan is all that a
//        backend gets to see.
// Keeps: values. What passes between steps lies in one arena, reused by lifetime.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "interface/graph.h"
#include "kernels/capability.h"
#include "kernels/kernel_ir.h"
#include "passes/fusion/fuse.h"

namespace lamina::kernel {

// Where an arg's memory comes from.
struct Binding {
  enum class Source { none, input, output, arena, table } source = Source::none;  // none: a port that is left out
  size_t index = 0;   // port, byte offset in the arena, or table number
  int64_t bytes = 0;  // from the first byte of that memory
};

// Generated: one loop nest.
struct KernelStep {
  Kernel kernel;
  std::vector<Binding> args;  // per kernel arg
};

// One heavy op over whole tensors, run by a primitive library of the backend.
struct LibraryStep {
  Op op;                                       // its kind, name and attributes; its value indices mean nothing here
  std::vector<LogicalTensor> inputs, outputs;  // by port, all known; an empty port where one is left out
  std::vector<Binding> args;                   // of the inputs, then of the outputs
};

using PlanStep = std::variant<KernelStep, LibraryStep>;

const std::vector<Binding>& args_of(const PlanStep& step);

struct Plan {
  std::vector<LogicalTensor> inputs, outputs;  // the partition's ports
  std::vector<PlanStep> steps;
  std::vector<std::vector<float>> tables;
  size_t arena_bytes = 0;
  int64_t required_bytes = 0;  // bytes of the ports, each once

  // An output may take the memory of an input that has its strides and type when one kernel alone reads the one, element for
  // element, and writes the other in its last walk over the row: earlier, a later walk would read the input again.
  bool may_share(size_t input, size_t output) const;
  // Such pairs, {input index, output index}, each port in one at most.
  std::vector<std::pair<size_t, size_t>> inplace_ports() const;
};

// `groups` are all of the graph's, in an order in which they can run. Throws Error(invalid_graph) for a port that is both an
// input and an output, Error(unimplemented) for an op that can be no step on this target, Error(out_of_memory) for an arena
// that has no size.
Plan make_plan(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs,
               const std::vector<FusionGroup>& groups, const PlanTarget& target);

// Bytes that a step reads and writes in main memory, each arg once.
int64_t moved_bytes(const Kernel& kernel);
int64_t moved_bytes(const PlanStep& step);

}  // namespace lamina::kernel
