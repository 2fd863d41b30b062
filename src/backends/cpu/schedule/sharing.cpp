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

// What the thread with most of `units` has of `total`; the last unit may not be full.
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

bool overflows_cache(const Footprint& bytes, const Caches& caches) {
  const int64_t room = caches.second / tuning::kOverflowParts * tuning::kOverflowPartsOfRows;
  return bytes.shared > bytes.read && 2 * bytes.read + bytes.shared > room;
}

bool may_be_split(const Kernel& kernel) {
  const bool reduces = kernel.has_row_reduction() || kernel.has_column_sum();
  return is_one_run(kernel) && reduces && !has_nibbles(kernel) &&
         (kernel.row_size() > numerics::kBlock || (reduces_whole_rows(kernel) && kernel.row_size() > tuning::kColumnUnit));
}

bool reduces_whole_rows(const Kernel& kernel) {
  const auto is_known_late = [last = kernel.phase_count() - 1](const Node& n) {
    return (n.kind == NodeKind::reduce || n.kind == NodeKind::moments) && n.phase > last;
  };
  return kernel.row_size() < tuning::kShortestSplitRow && kernel.has_column_sum() &&
         std::none_of(kernel.nodes.begin(), kernel.nodes.end(), is_known_late);
}

bool can_split(const Kernel& kernel, const Caches& caches) {
  const int64_t units = kernel.has_column_sum() ? kernel.row_count() / kColumnBlockRows : kernel.row_count();
  if (!may_be_split(kernel)) return false;
  if (kernel.row_size() < tuning::kShortestSplitRow)
    return units <= tuning::kMostUnits && kernel.row_size() >= tuning::kShortestRowOfColumns && reduces_whole_rows(kernel);
  return units <= tuning::kMostUnits || overflows_cache(footprint(kernel), caches);
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

bool RowSharing::gains_by_split(int threads) const {
  if (threads == 1 || rows_ == 0) return false;
  const int64_t together = std::min(rows_, kColumnBlockRows);
  const double by_rows = share_of_busiest(threads, sums_columns_ ? kColumnBlockRows : 1, rows_);
  const double by_parts = share_of_busiest(threads, unit_of_split_row(), row_size_);
  if (reduces_whole_rows_)
    return std::max(by_parts, share_of_busiest(threads, 1, together)) <= tuning::kSplitOfWholeRows * by_rows;
  return by_parts <= (overflows_cache(footprint_, caches_) ? tuning::kSplitOfOverflowing : tuning::kSplitOfParts) * by_rows;
}

int64_t RowSharing::rows_between_barriers(int threads) const {
  const int64_t room = caches_.second / tuning::kGroupParts * tuning::kGroupPartsOfRows * threads - footprint_.shared;
  const int64_t fitting = room / (2 * std::max<int64_t>(footprint_.read, 1));
  return std::clamp<int64_t>(std::min(fitting, tuning::kElementsBetweenBarriers * threads / row_size_), 1, kColumnBlockRows);
}

bool RowSharing::divides_along_rows(int threads) const {
  return !reduces_rows_ && rows_ < threads * tuning::kFewRowsPerThread && row_size_ > numerics::kBlock;
}

}  // namespace lamina::cpu
