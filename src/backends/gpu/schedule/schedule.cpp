#include "backends/gpu/schedule/schedule.h"

#include <algorithm>
#include <bit>

#include "backends/gpu/schedule/tuning.h"
#include "kernels/builder.h"

namespace lamina::gpu {

namespace {

using kernel::Arg;
using kernel::Kernel;

bool reduces(const Kernel& kernel) { return kernel.has_row_reduction() || kernel.has_column_sum(); }

bool varies_inside(const Kernel& kernel, const Arg& arg) {
  return std::any_of(arg.strides.begin() + kernel.outer_rank, arg.strides.end(), [](int64_t s) { return s != 0; });
}

bool uses_f64(const Kernel& kernel) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                     [](const kernel::Node& n) { return n.per_element && n.type == kernel::Type::f64; });
}

// 16 bytes of the narrowest tensor that is dense along the row, halved until it divides the innermost extent.
int choose_vector(const Kernel& kernel) {
  int bytes = 8;
  bool any = false;
  for (const Arg& arg : kernel.args) {
    if (arg.strides.back() != 1 || bits_of(arg.dtype) < 8) continue;
    bytes = std::min<int>(bytes, static_cast<int>(bytes_of(arg.dtype, 1)));
    any = true;
  }
  if (!any) return 1;
  int vector = std::min(tuning::kAccessBytes / bytes, uses_f64(kernel) ? tuning::kLongestVectorF64 : tuning::kLongestVector);
  while (vector > 1 && kernel.extents.back() % vector != 0) vector /= 2;
  return vector;
}

// Whether elements of a row are far apart, and those of neighbouring rows are contiguous.
bool rows_are_adjacent(const Kernel& kernel) {
  if (kernel.has_column_sum() || kernel.outer_rank == 0) return false;
  int together = 0, apart = 0;
  for (const Arg& arg : kernel.args) {
    if (!varies_inside(kernel, arg)) continue;
    if (arg.strides.back() == 1)
      ++apart;
    else if (arg.strides[static_cast<size_t>(kernel.outer_rank) - 1] == 1)
      ++together;
  }
  return together > apart;
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

int power_of_two_at_least(int64_t count, int largest) {
  return static_cast<int>(
      std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(count, 1)))), largest));
}

int power_of_two_at_most(int count) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(count, 1)))); }

void choose_transposed_team(const Kernel& kernel, int largest, Schedule& schedule) {
  schedule.rows_adjacent = true;
  schedule.vector = 1;
  schedule.rows_per_group = std::min(tuning::kWarp, largest);
  schedule.team = power_of_two_at_least(kernel.row_size() / tuning::kElementsPerThreadAcrossRows,
                                        std::min(largest / schedule.rows_per_group, tuning::kWarp));
}

// Short rows use as many threads as chunks. For longer rows, threads are added until none has more than kElementsPerThread
// elements; with column sums, whose rows run one after the other, until none has more than one chunk.
void choose_team(const Kernel& kernel, int largest, Schedule& schedule) {
  const int64_t chunks = (kernel.row_size() + schedule.vector - 1) / schedule.vector;
  const int held = kernel.has_column_sum() ? 1 : std::max(1, tuning::kElementsPerThread / schedule.vector);
  schedule.team = power_of_two_at_least(chunks, std::min(tuning::kWarp, largest));
  while (schedule.team < largest && chunks > int64_t{schedule.team} * held) schedule.team *= 2;
  schedule.rows_per_group = std::max(1, std::min(tuning::kUsualGroup, largest) / schedule.team);
}

// Whether one row, or block of rows, per team would leave the device idle.
bool wants_split(const Kernel& kernel, const DeviceLimits& limits, const Schedule& schedule) {
  const int64_t rows =
      schedule.column_rows == 0 ? kernel.row_count() : (kernel.row_count() + schedule.column_rows - 1) / schedule.column_rows;
  return !is_persistent(kernel, schedule) && rows > 0 &&
         (rows + schedule.rows_per_group - 1) / schedule.rows_per_group < limits.compute_units;
}

}  // namespace

Schedule choose_schedule(const Kernel& kernel, const DeviceLimits& limits) {
  Schedule schedule;
  const int largest = power_of_two_at_most(limits.max_group);
  schedule.vector = choose_vector(kernel);
  schedule.wide_offsets = needs_wide_offsets(kernel);
  if (!reduces(kernel)) {
    schedule.flat = true;
    schedule.rows_per_group = std::min(tuning::kFlatGroup, largest);
    return schedule;
  }
  if (rows_are_adjacent(kernel))
    choose_transposed_team(kernel, std::min(largest, tuning::kMaxGroup), schedule);
  else
    choose_team(kernel, std::min(largest, tuning::kMaxGroup), schedule);
  const int64_t chunks = (kernel.row_size() + schedule.vector - 1) / schedule.vector;
  const int64_t wanted = (chunks + schedule.team - 1) / schedule.team;
  schedule.steps = static_cast<int>(std::clamp<int64_t>(wanted, 1, std::max(1, tuning::kElementsPerThread / schedule.vector)));
  if (kernel.has_column_sum()) {
    const bool persistent = is_persistent(kernel, schedule);
    schedule.column_rows = persistent ? tuning::kColumnRows : tuning::kLongColumnRows;
    schedule.column_registers =
        persistent && schedule.vector * schedule.steps <=
                          (schedule.team >= tuning::kMaxGroup ? tuning::kColumnRegistersCrowded : tuning::kElementsPerThread);
  }
  schedule.split = wants_split(kernel, limits, schedule);
  return schedule;
}

bool is_persistent(const Kernel& kernel, const Schedule& schedule) { return kernel.row_size() <= schedule.block(); }

kernel::LoopPolicy loop_policy(const Kernel& kernel, const Schedule& schedule) {
  kernel::LoopPolicy policy{.moments_by_block = !is_persistent(kernel, schedule)};
  if (schedule.flat || policy.moments_by_block) return policy;
  const int elements = schedule.vector * schedule.steps;
  policy.live_size = [elements](const kernel::Node& n, kernel::CostClass cost) {
    const bool is_worth_it = is_load(n) || cost == kernel::CostClass::function;
    return !is_worth_it ? 0 : elements * (n.type == kernel::Type::f64 || n.type == kernel::Type::s64 ? 2 : 1);
  };
  policy.keeps_loads_first = true;
  const bool is_crowded = schedule.group_size() >= tuning::kMaxGroup;
  policy.live_space = is_crowded ? tuning::kLiveWordsCrowded : tuning::kLiveWords;
  const auto columns = std::count_if(kernel.args.begin(), kernel.args.end(), [](const Arg& arg) { return arg.column; });
  if (schedule.column_registers)
    policy.live_space -= columns * elements;
  else if (columns > 0 && is_crowded)
    policy.live_space = 0;  // sums in memory need their addresses and old values
  return policy;
}

const char* name_of(const Schedule& schedule) {
  const bool columns = schedule.column_rows > 0;
  if (schedule.flat) return "flat";
  if (schedule.split) return columns ? "split columns" : "split";
  if (schedule.rows_adjacent) return "transposed";
  if (schedule.team < tuning::kWarp) return columns ? "packed columns" : "packed";
  if (schedule.team == tuning::kWarp) return columns ? "warp columns" : "warp";
  return columns ? "block columns" : "block";
}

}  // namespace lamina::gpu
