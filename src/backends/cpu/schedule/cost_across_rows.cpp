// The time of rows that are lanes: a vector is one position of as many rows as it has lanes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "backends/cpu/schedule/cost_parts.h"

namespace lamina::cpu {

using kernel::Arg;

namespace {

// Transposing n vectors of n lanes takes log2(n) instructions per vector.
double of_transposed_vector(const Costs& costs, double lanes) {
  return costs.transpose * std::log2(lanes) / std::log2(kFullVector);
}

}  // namespace

// The virtual lanes of a reduction across rows: their vectors are in memory, where each position adds to one of them, and are
// folded at the end. Whole chunks that no block is transposed for keep them in registers, and fold half of them; so do short
// rows, whose positions are lanes themselves (run_across.cpp).
double CostModel::virtual_lanes(const Schedule& s, bool transposes) const {
  double reductions = 0;
  for (const Walk& walk : walks_) reductions += walk.reductions;
  const Costs& costs = machine_.costs;
  const int64_t run = kernel_.extents.back();
  const auto lanes =
      static_cast<double>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(run, 1, numerics::kVirtualLanes))));
  if (is_one_run(kernel_) && run <= tuning::kPositionsAtOnce) return reductions * lanes * costs.operation;
  const bool in_registers = !transposes && is_one_run(kernel_) && run >= numerics::kVirtualLanes;
  const double folded = in_registers ? lanes / 2 : lanes, added = in_registers ? 0 : size_;
  const double moved = (costs.read[0] + costs.write[0]) * s.vector_bits / 8 / kLineBytes;
  return reductions * (added * moved + folded * (2 * moved + costs.operation));
}

// A block is transposed as a whole, even if it is not full.
double CostModel::across_row(const Schedule& s) const {
  const Costs& costs = machine_.costs;
  const Row row = row_of(s);
  const double lanes = lane_count(kernel_, s.vector_bits);
  const double rows = static_cast<double>(kernel_.extents[static_cast<size_t>(kernel_.outer_rank) - 1]);
  const double filled = rows / (std::ceil(rows / s.rows_per_group) * s.rows_per_group);
  double of_vector = 0, of_block = 0;
  std::vector<int> loaded;  // expensive loads are kept
  const auto access = [&](int a) {
    const Arg& arg = kernel_.arg(a);
    const int64_t step = arg.strides[static_cast<size_t>(kernel_.outer_rank) - 1];
    const double lines = lanes * bits_of(arg.dtype) / 8 / kLineBytes;
    const double line = step == 0 ? costs.read[0] : lines * read_again(row.rows * row.bytes, row);
    const bool is_expensive = step != 0 && step != 1 && !contains(loaded, a);
    loaded.push_back(a);
    of_vector += line + (is_expensive && arg.strides.back() != 1 ? of_gathered_vector(costs, lanes) : 0);
    of_block += is_expensive && arg.strides.back() == 1 ? of_transposed_vector(costs, lanes) : 0;
  };
  for (const Walk& walk : walks_) {
    const int kept = row.keeps_functions ? walk.functions_of_before : 0;
    of_vector += walk.operations * costs.operation + (walk.functions - kept) * costs.function +
                 kept * read_again(row.tile_bytes, row) + walk.conversions * costs.conversion + walk.sums * costs.fold / 4;
    for (const int a : walk.loads) access(a);
  }
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    const Arg& arg = kernel_.args[a];
    if (arg.output && !arg.column && varies_along_row(kernel_, arg)) access(static_cast<int>(a));
  }
  // A single walk prefetches nothing. Rows that do not fill lines write them in parts, block after block, and hardware does not
  // fetch such lines ahead.
  const bool fills_lines = falsely_shared_lines() == 0;
  const double waiting = (walks_.size() < 2 ? row.read : 0) + (fills_lines ? 0 : row.written);
  const double exposed = row.from_memory * waiting * costs.miss_latency;
  const double of_walks =
      (walk_count() * costs.walk / s.rows_per_group + (of_row_values_ + virtual_lanes(s, of_block > 0)) / lanes) / filled;
  return both((of_vector * size_ / lanes + of_block * std::ceil(size_ / lanes)) / filled, row.received + row.sent) + exposed +
         of_walks;
}

}  // namespace lamina::cpu
