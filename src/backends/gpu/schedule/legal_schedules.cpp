#include "backends/gpu/schedule/legal_schedules.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "backends/gpu/schedule/tuning.h"

namespace lamina::gpu {

namespace {

using kernel::Arg;
using kernel::Kernel;
using tuning::kLiveWords, tuning::kLiveWordsCrowded;

// ---- functions that compute the candidates in schedule_fields.def

using candidates::may_be, candidates::only;

std::vector<int> powers_down_from(int largest, int least = 1) {
  std::vector<int> powers;
  for (int power = largest; power >= least && power > 0; power /= 2) powers.push_back(power);
  return powers;
}

bool may_be_transposed(const Kernel& kernel) {
  return reduces(kernel) && !kernel.has_column_sum() && dense_args(kernel).across_rows > 0;
}

// From one lane per thread to kMostLanesOfThread, and more where a work-group has too few threads.
std::vector<int> team_sizes(const ScheduleContext& context) {
  const int largest = std::min(context.order.lanes, context.largest_group);
  return powers_down_from(largest, std::min(largest, std::max(1, context.order.lanes / tuning::kMostLanesOfThread)));
}

int blocks_of(const ScheduleContext& context) { return static_cast<int>(blocks_of_row(context.kernel, context.order)); }

// Whether each block of the row may have a team: in a cluster, or in one work-group, as if that were the cluster.
bool may_be_together(const ScheduleContext& context, const Schedule& s) {
  const int groups = std::max(context.cluster_groups, context.largest_group / s.team);
  return reduces(context.kernel) && may_be_cluster(context.kernel, context.order, groups, s);
}

std::vector<int> teams_of_a_group(const ScheduleContext& context, const Schedule& s) {
  if (s.together) return {s.cluster ? 1 : blocks_of(context)};
  const int least = s.flat ? std::min(tuning::kWarp, context.largest_group) : 1;
  return powers_down_from(context.largest_group / s.team, least);
}

bool may_be_split(const ScheduleContext& context, const Schedule& s) {
  return !s.together && reduces(context.kernel) && !is_one_block(context.kernel, context.order) &&
         context.kernel.row_count() > 0;
}

// Whether a thread's part of the row may be in registers from phase to phase.
bool keeps_rows(const ScheduleContext& context, const Schedule& s) {
  return reduces(context.kernel) && (s.together || is_one_block(context.kernel, context.order)) &&
         unrolls_chunks(context.order, s);
}

// Whether a thread's partial sums of columns may be in registers from row to row: it takes the same elements of each.
bool keeps_column_sums(const ScheduleContext& context, const Schedule& s) {
  return context.kernel.has_column_sum() && unrolls_chunks(context.order, s) &&
         (s.split || s.together || is_one_block(context.kernel, context.order));
}

std::vector<int> column_threads(const ScheduleContext& context) {
  return powers_down_from(std::clamp(context.largest_group / tuning::kColumnLanes, 1, kColumnPlaces));
}

bool needs_wide_offsets(const Kernel& kernel) {
  constexpr int64_t kLargest = tuning::kMaxNarrowOffset;
  if (!reduces(kernel) && kernel.row_count() * kernel.row_size() >= kLargest) return true;
  return std::any_of(kernel.args.begin(), kernel.args.end(),
                     [&](const Arg& arg) {
                       int64_t last = 0;
                       for (size_t d = static_cast<size_t>(kernel.outer_rank); d < arg.strides.size(); ++d)
                         last += std::max<int64_t>(kernel.extents[d] - 1, 0) * arg.strides[d];
                       return last >= kLargest;
                     }) ||
         kernel.row_size() >= kLargest;
}

constexpr ScheduleField<Schedule, ScheduleContext> kFields[] = {
#define LAMINA_FIELD(type, name, usual, ...) LAMINA_LEGAL_FIELD(Schedule, ScheduleContext, type, name, __VA_ARGS__)
#include "backends/gpu/schedule/schedule_fields.def"
};

}  // namespace

LegalSchedules legal_schedules(const Kernel& kernel, const DeviceLimits& limits) {
  const auto threads = static_cast<unsigned>(std::clamp(limits.max_group, 1, tuning::kMaxGroup));
  return {{kernel, sum_order(kernel), static_cast<int>(std::bit_floor(threads)), limits.cluster_groups, limits.local_bytes},
          kFields};
}

}  // namespace lamina::gpu
