#include "backends/cpu/schedule/lane_order.h"

#include <algorithm>

#include "backends/cpu/schedule/footprint.h"

namespace lamina::cpu {

using kernel::Arg;
using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;

// Rows that are read by index are not neighbours. Rows that write the same elements cannot be lanes of one vector. The sums of
// segments are contiguous along them.
bool may_be_transposed(const Kernel& kernel) {
  if (kernel.outer_rank == 0 || has_nibbles(kernel) || kernel.has_segment_sum() || kernel.row_count() * kernel.row_size() == 0)
    return false;
  const size_t lane_dim = static_cast<size_t>(kernel.outer_rank) - 1;
  const auto reads_by_index = [](const Node& n) { return n.kind == NodeKind::load_entry; };
  const auto races = [&](const Arg& arg) { return arg.output && !arg.column && arg.strides[lane_dim] == 0; };
  return std::none_of(kernel.nodes.begin(), kernel.nodes.end(), reads_by_index) &&
         std::none_of(kernel.args.begin(), kernel.args.end(), races);
}

std::vector<int> group_sizes(const Kernel& kernel, int vector_bits) {
  const size_t lane_dim = static_cast<size_t>(kernel.outer_rank) - 1;
  const int lanes = lane_count(kernel, vector_bits);
  const bool is_one_vector = std::any_of(kernel.args.begin(), kernel.args.end(), [&](const Arg& arg) {
    return arg.column || (varies_along_row(kernel, arg) && arg.strides[lane_dim] != 0 && arg.strides[lane_dim] != 1);
  });
  std::vector<int> sizes{lanes};
  for (const int count : {4, 2}) {
    if (!is_one_vector && fills_groups(kernel, lanes * count)) sizes.push_back(lanes * count);
  }
  return sizes;
}

bool fills_groups(const Kernel& kernel, int rows) {
  return kernel.extents[static_cast<size_t>(kernel.outer_rank) - 1] % rows == 0;
}

std::vector<LaneStep> lane_steps(const Kernel& kernel) {
  std::vector<LaneStep> steps;
  for (const Arg& arg : kernel.args) {
    const int64_t step = arg.strides[static_cast<size_t>(kernel.outer_rank) - 1];
    steps.push_back(step == 0 ? LaneStep::none : step == 1 ? LaneStep::one : LaneStep::other);
  }
  return steps;
}

}  // namespace lamina::cpu
