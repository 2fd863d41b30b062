// What a register tile does to each element of its result before it stores it: a kernel that follows the step, in place, such
// as a ReLU (kernels/following_kernels.h).
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel_ir.h"

namespace lamina::cpu {

struct ResultMap {
  std::vector<kernel::Node> nodes = {};  // loads of the element, constants, simple maps, and the store
  bool is_empty() const { return nodes.empty(); }
};

// Of a kernel with one arg that it reads and one that it writes. Empty if it computes other than simple maps in `type`.
ResultMap result_map_of(const kernel::Kernel& kernel, kernel::Type type);

std::string describe(const ResultMap& map);  // "" if it is empty

}  // namespace lamina::cpu
