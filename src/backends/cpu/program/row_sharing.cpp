#include "backends/cpu/program/row_sharing.h"

#include <algorithm>

#include "backends/cpu/program/tuning.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

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

int64_t RowSharing::unit_of_split_row() const { return reduces_whole_rows ? tuning::kColumnUnit : numerics::kBlock; }

double RowSharing::share_of_whole_rows(int threads) const {
  return share_of_busiest(threads, sums_columns ? kColumnBlockRows : 1, rows);
}

double RowSharing::share_of_parts(int threads) const {
  const double by_parts = share_of_busiest(threads, unit_of_split_row(), row_size);
  return reduces_whole_rows ? std::max(by_parts, share_of_busiest(threads, 1, std::min(rows, kColumnBlockRows))) : by_parts;
}

int64_t RowSharing::rows_between_barriers(int threads) const {
  const auto caches = static_cast<int64_t>(tuning::kRoomOfCache * static_cast<double>(second_cache)) * threads;
  return std::clamp<int64_t>((caches - shared_bytes) / (2 * std::max<int64_t>(read_bytes, 1)), 1, kColumnBlockRows);
}

bool RowSharing::divides_along_rows(int threads) const {
  return !reduces_rows && rows < threads * tuning::kMinChunks && row_size > numerics::kBlock;
}

}  // namespace lamina::cpu
