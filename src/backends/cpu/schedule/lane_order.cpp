#include "backends/cpu/schedule/lane_order.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/tiles.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

namespace {

using kernel::Arg;
using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;

// Costs are per this number of elements, which fill a line.
constexpr int64_t kElementsOfLine = tuning::kLine / 4;

bool is_transposed(int64_t step, int64_t other_step) { return step != 1 && other_step == 1; }

double contiguous(const Costs& costs) { return costs.read[0] + costs.operation; }

double lines_of_row(const Kernel& kernel) {
  return static_cast<double>((kernel.row_size() + kElementsOfLine - 1) / kElementsOfLine);
}

// The cost per line of elements.
double arithmetic(const Kernel& kernel, const Costs& costs) {
  double cost = 0;
  for (const Node& n : kernel.nodes) {
    if (!n.per_element || is_load(n) || n.kind == NodeKind::store) continue;
    cost += cost_of(n) == kernel::CostClass::function ? costs.function : costs.operation;
  }
  return cost;
}

// The cost of one row. Moments count as two reductions.
double cost_along_rows(const Kernel& kernel, const Costs& costs) {
  double cost = arithmetic(kernel, costs);
  for (const Arg& arg : kernel.args) {
    const bool repeats = !varies_along_row(kernel, arg) || arg.strides.back() == 0;  // one value for a run of elements
    cost += repeats ? 0 : arg.strides.back() == 1 ? contiguous(costs) : costs.gather;
  }
  cost *= lines_of_row(kernel);
  for (const Node& n : kernel.nodes)
    cost += costs.fold * seen_of_ends(kernel, kMaxRowsInTile) *
            (n.kind == NodeKind::moments  ? 2
             : n.kind == NodeKind::reduce ? 1
                                          : 0);
  return cost;
}

// A block is transposed as a whole, even if it is not full. Column sums fold the lanes of each position.
double cost_across_rows(const Kernel& kernel, size_t lane_dim, int lanes, const Costs& costs) {
  double of_line = arithmetic(kernel, costs), of_transposes = 0;
  for (const Arg& arg : kernel.args) {
    const int64_t step = arg.strides[lane_dim];
    if (arg.column) of_line += costs.fold / 4;
    if (arg.column || step == 0 || !varies_along_row(kernel, arg)) continue;
    if (is_transposed(step, arg.strides.back()))
      of_transposes += costs.transpose;
    else
      of_line += step == 1 ? contiguous(costs) : costs.gather;
  }
  const int64_t rows = kernel.extents[lane_dim], groups = (rows + lanes - 1) / lanes;
  const double filled = static_cast<double>(rows) / static_cast<double>(groups * lanes);
  const double lines = static_cast<double>(kernel.row_size()) / static_cast<double>(kElementsOfLine);
  return (lines * of_line + lines_of_row(kernel) * of_transposes) / filled;
}

// Rows that write the same elements cannot be lanes of one vector.
bool races(const Kernel& kernel, size_t dim) {
  return std::any_of(kernel.args.begin(), kernel.args.end(),
                     [&](const Arg& arg) { return arg.output && !arg.column && arg.strides[dim] == 0; });
}

bool goes_across_rows(const Kernel& kernel, size_t dim, const Machine& machine) {
  const int lanes = lane_count(kernel, bits_across_rows(machine));
  return !races(kernel, dim) && cost_across_rows(kernel, dim, lanes, machine.costs) < cost_along_rows(kernel, machine.costs);
}

// Whether the positions of a row are far apart, so that several vectors of rows read runs of several lines.
bool positions_lie_apart(const Kernel& kernel, int lanes) {
  const size_t lane_dim = static_cast<size_t>(kernel.outer_rank) - 1;
  return std::any_of(kernel.args.begin(), kernel.args.end(), [&](const Arg& arg) {
    return varies_along_row(kernel, arg) && arg.strides[lane_dim] != 0 && arg.strides.back() > lanes;
  });
}

// Whether the kernel has an outer dim that can be the dim of the lanes. Rows that are read by index are not neighbours.
bool has_lane_dim(const Kernel& kernel) {
  const auto reads_by_index = [](const Node& n) { return n.kind == NodeKind::load_entry; };
  return kernel.outer_rank > 0 && !has_nibbles(kernel) && kernel.row_count() * kernel.row_size() > 0 &&
         std::none_of(kernel.nodes.begin(), kernel.nodes.end(), reads_by_index);
}

void move_last(Dims& dims, size_t from, size_t to) {
  const auto begin = dims.begin();
  std::rotate(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(from) + 1,
              begin + static_cast<std::ptrdiff_t>(to) + 1);
}

}  // namespace

Kernel with_rows_arranged(Kernel kernel, const Machine& machine) {
  if (!has_lane_dim(kernel) || kernel.has_column_sum()) return kernel;
  const auto outer = static_cast<size_t>(kernel.outer_rank);
  const int lanes = lane_count(kernel, bits_across_rows(machine));
  const auto cost_across = [&](size_t d) { return cost_across_rows(kernel, d, lanes, machine.costs); };
  size_t best = outer;
  for (size_t d = 0; d < outer; ++d) {
    if (!goes_across_rows(kernel, d, machine)) continue;
    if (best == outer || cost_across(d) <= cost_across(best)) best = d;
  }
  if (best == outer) return kernel;
  move_last(kernel.extents, best, outer - 1);
  for (Arg& arg : kernel.args) move_last(arg.strides, best, outer - 1);
  for (Node& node : kernel.nodes) {
    if (node.kind == NodeKind::index) move_last(node.coefficients, best, outer - 1);
  }
  return kernel;
}

bool may_be_transposed(const Kernel& kernel) {
  return has_lane_dim(kernel) && !races(kernel, static_cast<size_t>(kernel.outer_rank) - 1);
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

void choose_lanes(Schedule& schedule, const Kernel& kernel, const Machine& machine) {
  schedule.vector_bits = vector_bits(machine);
  const int bits = bits_across_rows(machine);
  if (!may_be_transposed(kernel) || !goes_across_rows(kernel, static_cast<size_t>(kernel.outer_rank) - 1, machine)) return;
  schedule.transposed = true;
  schedule.vector_bits = bits;
  const bool half_fills = fills_groups(kernel, lane_count(kernel, bits / 2)) && !fills_groups(kernel, lane_count(kernel, bits));
  if (half_fills && bits > 256) schedule.vector_bits = bits / 2;
  const std::vector<int> sizes = group_sizes(kernel, schedule.vector_bits);
  schedule.rows_per_group = sizes[positions_lie_apart(kernel, sizes[0]) && sizes.size() > 1 ? 1 : 0];
  schedule.whole_groups = fills_groups(kernel, schedule.rows_per_group);
  schedule.lane_steps = lane_steps(kernel);
}

}  // namespace lamina::cpu
