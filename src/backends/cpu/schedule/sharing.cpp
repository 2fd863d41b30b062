#include "backends/cpu/schedule/sharing.h"

#include <algorithm>

#include "backends/cpu/schedule/tuning.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;
using numerics::kColumnBlockRows;

namespace {

// The part of `total` that the thread with most of `units` has. The last unit may not be full.
double share_of_busiest(int64_t units, int64_t threads, int64_t unit, int64_t total) {
  int64_t busiest = 0;
  for (int64_t part = 0; part < threads; ++part) {
    busiest = std::max(busiest, std::min(units * (part + 1) / threads * unit, total) - units * part / threads * unit);
  }
  return static_cast<double>(busiest) / static_cast<double>(total);
}

double share_of_busiest(int64_t threads, int64_t unit, int64_t total) {
  return share_of_busiest((total + unit - 1) / unit, threads, unit, total);
}

}  // namespace

bool may_be_split(const Kernel& kernel) {
  const bool reduces = kernel.has_row_reduction() || kernel.has_column_sum();
  return is_one_run(kernel) && reduces && !has_nibbles(kernel) &&
         (kernel.row_size() > numerics::kBlock || (reduces_whole_rows(kernel) && kernel.row_size() > tuning::kColumnUnit));
}

bool reduces_whole_rows(const Kernel& kernel) {
  const auto is_known_late = [last = kernel.phase_count() - 1](const Node& n) {
    return (n.kind == NodeKind::reduce || n.kind == NodeKind::moments) && n.phase > last;
  };
  return kernel.row_size() < tuning::kMinChunks * numerics::kBlock && kernel.has_column_sum() &&
         std::none_of(kernel.nodes.begin(), kernel.nodes.end(), is_known_late);
}

RowSharing::RowSharing(const Kernel& kernel, const Caches& caches)
    : rows_(kernel.row_count()),
      row_size_(kernel.row_size()),
      footprint_(footprint(kernel)),
      caches_(caches),
      reduces_rows_(kernel.has_row_reduction()),
      sums_columns_(kernel.has_column_sum()),
      reduces_whole_rows_(cpu::reduces_whole_rows(kernel)) {}

int64_t RowSharing::unit_of_split_row() const { return reduces_whole_rows_ ? tuning::kColumnUnit : numerics::kBlock; }

double RowSharing::share_of_whole_rows(int threads) const {
  return share_of_busiest(threads, sums_columns_ ? kColumnBlockRows : 1, rows_);
}

double RowSharing::share_of_parts(int threads) const {
  const double by_parts = share_of_busiest(threads, unit_of_split_row(), row_size_);
  return reduces_whole_rows_ ? std::max(by_parts, share_of_busiest(threads, 1, std::min(rows_, kColumnBlockRows))) : by_parts;
}

int64_t RowSharing::rows_between_barriers(int threads) const {
  const auto caches = static_cast<int64_t>(tuning::kRoomOfCache * static_cast<double>(caches_.second)) * threads;
  return std::clamp<int64_t>((caches - footprint_.shared) / (2 * std::max<int64_t>(footprint_.read, 1)), 1, kColumnBlockRows);
}

bool RowSharing::divides_along_rows(int threads) const {
  return !reduces_rows_ && rows_ < threads * tuning::kMinChunks && row_size_ > numerics::kBlock;
}

}  // namespace lamina::cpu
