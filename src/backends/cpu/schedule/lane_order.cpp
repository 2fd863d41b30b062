#include "backends/cpu/schedule/lane_order.h"

#include <algorithm>

#include "backends/cpu/schedule/footprint.h"

namespace lamina::cpu {

using kernel::Arg;
using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;

namespace {

bool is_equal_in_lanes(const Node& node, const std::vector<LaneStep>& lane_steps, const std::vector<bool>& equal) {
  const bool reads = node.kind == NodeKind::load || node.kind == NodeKind::load_entry;
  if (!reads && node.kind != NodeKind::map && node.kind != NodeKind::constant) return false;
  if (reads && lane_steps[static_cast<size_t>(node.arg)] != LaneStep::none) return false;
  return std::all_of(node.operands.begin(), node.operands.begin() + kernel::operand_count(node),
                     [&](int i) { return i < 0 || equal[static_cast<size_t>(i)]; });
}

// Rows of one entry, whose elements are the same or neighbours.
bool may_read_by_index(const Node& node, const std::vector<LaneStep>& lane_steps, const std::vector<bool>& equal) {
  const auto is_equal = [&](int i) { return i < 0 || equal[static_cast<size_t>(i)]; };
  return is_equal(node.operands[0]) && is_equal(node.operands[1]) &&
         lane_steps[static_cast<size_t>(node.arg)] != LaneStep::other;
}

}  // namespace

std::vector<bool> equal_in_lanes(const Kernel& kernel, const std::vector<LaneStep>& lane_steps) {
  std::vector<bool> equal;
  for (const Node& node : kernel.nodes) equal.push_back(is_equal_in_lanes(node, lane_steps, equal));
  return equal;
}

// Rows that are read by index, each by its own, are not neighbours. Rows that write the same elements cannot be lanes of one
// vector. The sums of segments are contiguous along them.
bool may_be_transposed(const Kernel& kernel) {
  if (kernel.outer_rank == 0 || has_nibbles(kernel) || kernel.has_segment_sum() || kernel.row_count() * kernel.row_size() == 0)
    return false;
  const size_t lane_dim = static_cast<size_t>(kernel.outer_rank) - 1;
  const std::vector<LaneStep> steps = lane_steps(kernel);
  const std::vector<bool> equal = equal_in_lanes(kernel, steps);
  const auto reads_apart = [&](const Node& n) {
    return n.kind == NodeKind::sum_entries || (n.kind == NodeKind::load_entry && !may_read_by_index(n, steps, equal));
  };
  const auto races = [&](const Arg& arg) { return arg.output && !arg.column && arg.strides[lane_dim] == 0; };
  return std::none_of(kernel.nodes.begin(), kernel.nodes.end(), reads_apart) &&
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
