#include "backends/cpu/schedule/tiles.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

namespace {

using kernel::Arg;
using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;

// What rows have in common (gamma, beta, column sums) stays in the first-level cache for all rows of a tile if they take the
// last phase in strips; the tile itself waits in the second-level cache, the next one beside it. A value along the row that is
// dear to compute is kept for that phase in the first-level cache, where a few long rows have no room.
bool can_take_strips(const Kernel& kernel) {
  return may_take_strips(kernel) &&
         kernel.row_size() * (kernel.computes_in_f64() ? 2 : 1) > tuning::kFewestStrips * tuning::kStrip &&
         !computes_functions(kernel, kernel.phase_count() - 1);
}

// Strips are worth it with column sums and where each row's walk would begin at another element.
bool sums_or_follows_lines(const Schedule& schedule, const Kernel& kernel, const Footprint& bytes) {
  return kernel.has_column_sum() || (schedule.follows_lines && bytes.shared > 0);
}

// So they are where what rows share overflows the first-level cache and is most of what a row's walk reads. (A stream of lines
// goes on from row to row.)
bool reads_shared_mostly(const Schedule& schedule, const Kernel& kernel, const Footprint& bytes, const Caches& caches) {
  const bool overflows = bytes.shared >= std::max(tuning::kSharedTimesRead * bytes.read, caches.first);
  return overflows && !schedule.realigns && !computes_functions(kernel, kernel.phase_count());
}

// What was asked for a tile ahead waits in the second-level cache until its turn; a tile that is too large for that is asked
// for late.
bool overflows_wait(int64_t tile_bytes, const Caches& caches) {
  return tile_bytes >= caches.second / tuning::kLateShareOfSecondCache;
}

}  // namespace

bool batches_rows(const Kernel& kernel) {
  const auto is_moments = [](const Node& n) { return n.kind == NodeKind::moments; };
  return is_one_run(kernel) && kernel.row_size() <= tuning::kLongestRowOfBatch &&
         std::any_of(kernel.nodes.begin(), kernel.nodes.end(), is_moments);
}

bool may_take_strips(const Kernel& kernel) {
  return is_one_run(kernel) && (kernel.has_row_reduction() || kernel.has_column_sum());
}

bool asks_for_rows(const Kernel& kernel, const Schedule& schedule) { return !schedule.transposed && kernel.phase_count() > 1; }

bool may_keep_conversions(const Kernel& kernel, const Schedule& schedule, const Footprint& bytes) {
  return bytes.kept > 0 && is_one_run(kernel) && !schedule.transposed && !schedule.split;
}

std::vector<int> inputs_longer_than(const Kernel& kernel, int64_t bytes) {
  std::vector<int> args;
  for (size_t a = 0; a < kernel.args.size() && is_one_run(kernel); ++a) {
    const Arg& arg = kernel.args[a];
    const bool is_dense = arg.strides.back() == 1 && bits_of(arg.dtype) >= 8;
    if (!arg.output && is_dense && bytes_of(arg.dtype, kernel.row_size()) > bytes) args.push_back(static_cast<int>(a));
  }
  return args;
}

int rows_per_tile(const Kernel& kernel) {
  if (kernel.phase_count() == 1) return kernel.has_column_sum() ? tuning::kRowsOfSumsAlone : 1;
  const int64_t row_bytes = std::max<int64_t>(kernel.row_size() * 4, 1), rows = tuning::kTileBytes / row_bytes;
  if (batches_rows(kernel)) {
    const int64_t of_batch = std::clamp<int64_t>(rows, tuning::kFewestRowsOfBatch, tuning::kMostRowsOfBatch);
    return static_cast<int>(std::bit_floor(static_cast<uint64_t>(of_batch)));
  }
  if (kernel.has_column_sum() && row_bytes > tuning::kLongRowWithSums) return 1;
  return static_cast<int>(std::clamp<int64_t>(rows, 1, tuning::kMostRows));
}

void choose_strips(Schedule& schedule, const Kernel& kernel, const Footprint& bytes, const Caches& caches) {
  // Rows whose walks begin at different elements take no loop together; short rows of 16 bits gain by a tile all the same.
  if (schedule.follows_lines && kernel.has_column_sum() && kernel.has_row_reduction() && bytes.kept == 0)
    schedule.rows_per_tile = 1;
  if (!can_take_strips(kernel)) return;
  if (!sums_or_follows_lines(schedule, kernel, bytes) && !reads_shared_mostly(schedule, kernel, bytes, caches)) return;
  const int64_t fitting = caches.second / tuning::kTileShareOfSecondCache / std::max<int64_t>(bytes.read, 1);
  schedule.rows_per_tile = static_cast<int>(std::clamp<int64_t>(fitting, 1, tuning::kMostRowsOfStrip));
  if (schedule.rows_per_tile > 1) schedule.strip = tuning::kStrip;
}

void choose_strips_of_split_rows(Schedule& schedule, const Kernel& kernel) {
  const bool in_strips = can_take_strips(kernel) && sums_or_follows_lines(schedule, kernel, footprint(kernel));
  schedule.rows_per_tile = in_strips ? tuning::kMostRowsOfStrip : 1;
  schedule.strip = in_strips ? tuning::kStrip : 0;
}

void choose_rows_together(Schedule& schedule, const Kernel& kernel) {
  const bool shares = kernel.has_column_sum() && !schedule.follows_lines && !schedule.realigns && !schedule.transposed;
  schedule.rows_together = shares ? std::min(tuning::kRowsOfSumsTogether, schedule.rows_per_tile) : 1;
}

bool reads_several_streams(const Kernel& kernel) {
  return std::count_if(kernel.args.begin(), kernel.args.end(), [&](const Arg& arg) {
           return !arg.output && varies_by_row(kernel, arg) && varies_along_row(kernel, arg);
         }) >= tuning::kStreamsFetchedNear;
}

void choose_prefetching(Schedule& schedule, const Kernel& kernel, const Footprint& bytes, const Caches& caches) {
  const int64_t of_tile = schedule.rows_per_tile * (bytes.read + bytes.kept) + bytes.shared;
  const int64_t room = caches.first / tuning::kFirstCacheParts * tuning::kFirstCachePartsOfRows;
  const bool fits_first = of_tile + schedule.rows_per_tile * bytes.read <= room;
  if (!schedule.transposed) schedule.prefetched_within_row = inputs_longer_than(kernel, tuning::kLongestRowAhead);
  if (may_keep_conversions(kernel, schedule, bytes)) schedule.keeps_conversions = of_tile <= caches.first;
  if (!asks_for_rows(kernel, schedule)) return;
  schedule.prefetches_late = overflows_wait(schedule.rows_per_tile * bytes.read, caches);
  schedule.prefetches_to_first = fits_first || (schedule.prefetches_late && reads_several_streams(kernel));
}

}  // namespace lamina::cpu
