// Steps over tensors without elements.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/program/program_writer.h"
#include "interface/logical_tensor.h"

namespace lamina::cpu {

// Sums over nothing: a product without columns, a gradient over no images. The outputs are 0, or the bias.
struct EmptySums {
  struct Port {
    size_t arg;
    LogicalTensor tensor;
  };
  std::vector<Port> outputs = {};
  std::optional<Port> bias = {};  // its shape broadcasts to that of the outputs
};

std::unique_ptr<const Primitive> empty_sums_step(EmptySums sums);
std::unique_ptr<const Primitive> read_empty_sums(ProgramReader& from, size_t args);

// No output has elements.
std::unique_ptr<const Primitive> nothing_step();

}  // namespace lamina::cpu
