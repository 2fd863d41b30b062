#include "backends/cpu/schedule/tiles.h"

#include <algorithm>

#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Arg;
using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;

namespace {

// The largest number of rows whose reduction ends a core overlaps.
constexpr int kMaxRowsInFlight = 4;

}  // namespace

// A batch has no addresses of its rows, from which a row value could be read by index.
bool batches_rows(const Kernel& kernel) {
  const auto is_moments = [](const Node& n) { return n.kind == NodeKind::moments; };
  const auto reads_by_index = [](const Node& n) { return n.kind == NodeKind::load_entry && !n.per_element; };
  return is_one_run(kernel) && kernel.row_size() <= tuning::kLongestRowOfBatch &&
         std::none_of(kernel.nodes.begin(), kernel.nodes.end(), reads_by_index) &&
         std::any_of(kernel.nodes.begin(), kernel.nodes.end(), is_moments);
}

double seen_of_ends(const Kernel& kernel, int rows) {
  if (rows > 1 && batches_rows(kernel)) return 0.25 + 1.0 / rows;
  return (1 + 1.0 / std::min(rows, kMaxRowsInFlight)) / 2;
}

bool may_take_strips(const Kernel& kernel) {
  return is_one_run(kernel) && (kernel.has_row_reduction() || kernel.has_column_sum());
}

bool may_prefetch_rows(const Kernel& kernel, const Schedule& schedule) {
  return !schedule.transposed && kernel.phase_count() > 1;
}

bool may_keep_conversions(const Kernel& kernel, const Schedule& schedule, const Footprint& bytes) {
  return bytes.converted > 0 && is_one_run(kernel) && !schedule.transposed && !schedule.split;
}

std::vector<int> inputs_along_rows(const Kernel& kernel) {
  std::vector<int> args;
  for (size_t a = 0; a < kernel.args.size() && is_one_run(kernel); ++a) {
    const Arg& arg = kernel.args[a];
    const bool is_dense = arg.strides.back() == 1 && bits_of(arg.dtype) >= 8;
    if (!arg.output && is_dense) args.push_back(static_cast<int>(a));
  }
  return args;
}

}  // namespace lamina::cpu
