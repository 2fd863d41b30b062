#include "backends/cpu/schedule/lane_order.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

namespace {

using kernel::Arg;
using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;

bool is_transposed(int64_t step, int64_t other_step) { return step != 1 && other_step == 1; }

double access_cost(int64_t step, int64_t other_step) {
  return step == 1 ? tuning::kContiguous : is_transposed(step, other_step) ? tuning::kTransposed : tuning::kGathered;
}

double vectors_of_row(const Kernel& kernel) {
  return static_cast<double>((kernel.row_size() + tuning::kVectorOfCosts - 1) / tuning::kVectorOfCosts);
}

// Of one row.
double cost_along_rows(const Kernel& kernel) {
  double cost = 0;
  for (const Arg& arg : kernel.args)
    cost += varies_along_row(kernel, arg) ? access_cost(arg.strides.back(), arg.strides.back()) : 0;
  cost *= vectors_of_row(kernel);
  for (const Node& n : kernel.nodes)
    cost += n.kind == NodeKind::moments ? tuning::kMoments : n.kind == NodeKind::reduce ? tuning::kReduction : 0;
  return cost;
}

double cost_across_rows(const Kernel& kernel, size_t lane_dim, int lanes) {
  double of_vector = 0, of_square = 0;
  for (const Arg& arg : kernel.args) {
    const int64_t step = arg.strides[lane_dim];
    if (arg.column) of_vector += tuning::kColumnTransposed;
    if (arg.column || step == 0 || !varies_along_row(kernel, arg)) continue;
    of_vector += access_cost(step, arg.strides.back());
    if (is_transposed(step, arg.strides.back())) of_square += tuning::kSquare;
  }
  const int64_t rows = kernel.extents[lane_dim], groups = (rows + lanes - 1) / lanes;
  const double filled = static_cast<double>(rows) / static_cast<double>(groups * lanes);
  return (static_cast<double>(kernel.row_size()) / static_cast<double>(tuning::kVectorOfCosts) * of_vector +
          vectors_of_row(kernel) * of_square) /
         filled;
}

bool suits_lanes(const Kernel& kernel, size_t dim) {
  const bool races = std::any_of(kernel.args.begin(), kernel.args.end(),
                                 [&](const Arg& arg) { return arg.output && !arg.column && arg.strides[dim] == 0; });
  return kernel.extents[dim] >= tuning::kFewestRowsInLanes && !races;
}

bool goes_across_rows(const Kernel& kernel, size_t dim, int vector_bits) {
  return suits_lanes(kernel, dim) && cost_across_rows(kernel, dim, lane_count(kernel, vector_bits)) < cost_along_rows(kernel);
}

// Where the positions of a row lie apart, several vectors of rows make runs of several lines of memory. Not with transpositions
// or gathers, which are made for one vector.
int vectors_per_group(const Kernel& kernel, int lanes) {
  const size_t lane_dim = static_cast<size_t>(kernel.outer_rank) - 1;
  bool positions_lie_apart = false;
  for (const Arg& arg : kernel.args) {
    if (arg.column) return 1;
    if (!varies_along_row(kernel, arg) || arg.strides[lane_dim] == 0) continue;
    if (arg.strides[lane_dim] != 1) return 1;
    positions_lie_apart = positions_lie_apart || arg.strides.back() > lanes;
  }
  for (const int count : tuning::kVectorsPerGroup) {
    if (positions_lie_apart && kernel.extents[lane_dim] % (lanes * count) == 0) return count;
  }
  return 1;
}

bool may_be_transposed(const Kernel& kernel) {
  return kernel.outer_rank > 0 && !has_nibbles(kernel) && kernel.row_count() * kernel.row_size() > 0;
}

void move_last(Dims& dims, size_t from, size_t to) {
  const auto begin = dims.begin();
  std::rotate(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(from) + 1,
              begin + static_cast<std::ptrdiff_t>(to) + 1);
}

}  // namespace

Kernel with_rows_arranged(Kernel kernel, const Machine& machine) {
  if (!may_be_transposed(kernel) || kernel.has_column_sum()) return kernel;
  const auto outer = static_cast<size_t>(kernel.outer_rank);
  const int bits = vector_bits(machine.isa), lanes = lane_count(kernel, bits);
  size_t best = outer;
  for (size_t d = 0; d < outer; ++d) {
    if (!goes_across_rows(kernel, d, bits)) continue;
    if (best == outer || cost_across_rows(kernel, d, lanes) <= cost_across_rows(kernel, best, lanes)) best = d;
  }
  if (best == outer) return kernel;
  move_last(kernel.extents, best, outer - 1);
  for (Arg& arg : kernel.args) move_last(arg.strides, best, outer - 1);
  for (Node& node : kernel.nodes) {
    if (node.kind == NodeKind::index) move_last(node.coefficients, best, outer - 1);
  }
  return kernel;
}

void choose_lanes(Schedule& schedule, const Kernel& kernel) {
  const auto lane_dim = static_cast<size_t>(kernel.outer_rank) - 1;
  const int bits = schedule.vector_bits;
  if (!may_be_transposed(kernel) || !goes_across_rows(kernel, lane_dim, bits)) return;
  schedule.transposed = true;
  schedule.rows_per_tile = 1;
  const int64_t rows = kernel.extents[lane_dim];
  const bool half_fills = rows % lane_count(kernel, bits / 2) == 0 && rows % lane_count(kernel, bits) != 0;
  if (half_fills && bits > 256) schedule.vector_bits = bits / 2;
  const int lanes = lane_count(kernel, schedule.vector_bits);
  schedule.rows_per_group = lanes * vectors_per_group(kernel, lanes);
  schedule.whole_groups = rows % schedule.rows_per_group == 0;
  for (const Arg& arg : kernel.args) {
    const int64_t step = arg.strides[lane_dim];
    schedule.lane_steps.push_back(step == 0 ? LaneStep::none : step == 1 ? LaneStep::one : LaneStep::other);
  }
}

}  // namespace lamina::cpu
