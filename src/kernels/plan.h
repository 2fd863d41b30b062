// In:    the graph of a partition whose shapes, strides and dtypes are all known, and its ports.
// Out:   the kernels that compute it, in order, and where the memory behind each of their args comes from.
// Keeps: values. What passes between kernels lies in one arena.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "interface/graph.h"
#include "kernels/kernel_ir.h"

namespace lamina::kernel {

// Where an arg's memory comes from.
struct Binding {
  enum class Source { input, output, arena, table } source;
  size_t index;       // port, byte offset in the arena, or table number
  int64_t bytes = 0;  // from the first byte of that memory
};

struct PlanStep {
  Kernel kernel;
  std::vector<Binding> args;
};

struct Plan {
  std::vector<PlanStep> steps;
  std::vector<std::vector<float>> tables;
  size_t arena_bytes = 0;
  int64_t required_bytes = 0;  // bytes of the ports, each once

  // An output may take the memory of an input that has its strides and type when one kernel alone reads the one, element for
  // element, and writes the other in its last walk over the row: earlier, a later walk would read the input again.
  bool may_share(size_t input, size_t output) const;
  // Such pairs, {input index, output index}, each port in one at most.
  std::vector<std::pair<size_t, size_t>> inplace_ports(size_t inputs, size_t outputs) const;
};

// Offsets in the arena are multiples of `alignment`, a power of two. Throws Error(invalid_graph) for a port that is both an
// input and an output.
Plan make_plan(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs, size_t alignment);

// Bytes that a kernel reads and writes in main memory, each arg once.
int64_t moved_bytes(const Kernel& kernel);

// A backend that runs generated kernels, as far as the ops that it takes depend on it.
struct KernelBackend {
  std::string_view name;
  bool reads_four_bits = false, writes_four_bits = false;  // s4 and u4, two elements a byte
};

// "" when kernels can be made of the op, else why not, one sentence that names the backend.
std::string why_no_kernel(const Graph& graph, const Op& op, const KernelBackend& backend);

}  // namespace lamina::kernel
