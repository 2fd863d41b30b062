#include "backends/gpu/schedule/schedule.h"

#include <algorithm>

#include "backends/gpu/schedule/legal_schedules.h"
#include "backends/gpu/schedule/registers.h"
#include "backends/gpu/schedule/tuning.h"
#include "backends/schedule/schedule_text.h"
#include "kernels/builder.h"

namespace lamina::gpu {

namespace {

using kernel::Arg;
using kernel::Kernel;

bool is_crowded(const Schedule& schedule) { return schedule.group_size() >= tuning::kMaxGroup; }

int64_t column_sums(const Kernel& kernel) {
  return std::count_if(kernel.args.begin(), kernel.args.end(), [](const Arg& arg) { return arg.column; });
}

void choose_transposed_team(const SumOrder& order, int largest, Schedule& schedule) {
  schedule.rows_adjacent = true;
  const int least = std::max(1, order.lanes / tuning::kMostLanesOfThread);
  schedule.team = std::min(std::max(std::min(order.lanes, largest / tuning::kWarp), least), largest);
  schedule.rows_per_group = std::min(tuning::kWarp, largest / schedule.team);
}

void choose_registers(const Kernel& kernel, const SumOrder& order, Schedule& schedule) {
  const bool unrolls = unrolls_chunks(order, schedule),
             keeps_rows = (schedule.together || is_one_block(kernel, order)) && unrolls;
  const int64_t columns = column_sums(kernel);
  schedule.column_registers = columns > 0 && (keeps_rows || (schedule.split && unrolls)) &&
                              elements_of_thread(order, schedule) * columns <= tuning::kLiveWords;
  if (!keeps_rows)
    schedule.live_words = 0;
  else if (schedule.cluster && columns == 0)
    schedule.live_words = tuning::kLiveWordsCrowded;
  else if (!is_crowded(schedule))
    schedule.live_words = tuning::kLiveWords;
  else  // sums in memory need their addresses and old values
    schedule.live_words = columns > 0 && !schedule.column_registers ? 0 : tuning::kLiveWordsCrowded;
}

// Whether one row per team would leave the device idle, or partial sums of columns would not fit in registers.
bool wants_split(const Kernel& kernel, const SumOrder& order, const DeviceLimits& limits, const Schedule& schedule) {
  const int64_t rows = kernel.row_count();
  if (is_one_block(kernel, order) || rows == 0) return false;
  return kernel.has_column_sum() || (rows + schedule.rows_per_group - 1) / schedule.rows_per_group < limits.compute_units;
}

// Teams that sum columns run row after row, and wait for each: longest in a cluster, least if they load many bytes at once.
bool wants_copies_ahead(const Kernel& kernel, const SumOrder& order, const DeviceLimits& limits, const Schedule& schedule) {
  if (!limits.copies_beside_threads || !kernel.has_column_sum()) return false;
  const int bytes = bytes_copied_ahead(kernel, order, schedule) / schedule.group_size();
  if (!schedule.cluster && bytes > tuning::kBytesAheadOfThread) return false;
  Schedule ahead = schedule;
  ahead.copies_ahead = true;
  return may_copy_ahead(kernel, order, limits.local_bytes, ahead);
}

// Teams along the row, of `team` threads each.
Schedule with_team(const Kernel& kernel, const SumOrder& order, const DeviceLimits& limits, int largest, Schedule schedule,
                   int team) {
  schedule.team = team;
  schedule.together = schedule.cluster = may_be_cluster(kernel, order, limits.cluster_groups, schedule);
  schedule.rows_per_group = schedule.cluster ? 1 : std::max(1, std::min(tuning::kUsualGroup, largest) / team);
  schedule.split = !schedule.together && wants_split(kernel, order, limits, schedule);
  schedule.copies_ahead = wants_copies_ahead(kernel, order, limits, schedule);
  choose_registers(kernel, order, schedule);
  return schedule;
}

// As many threads as possible share a row, while each has kChunksOfThread chunks if their values fit in registers. Sums of
// columns in registers need more of them than a thread of the largest group has.
Schedule choose_team(const Kernel& kernel, const SumOrder& order, const DeviceLimits& limits, int largest,
                     const Schedule& schedule) {
  const int least = std::max(1, order.lanes / tuning::kMostLanesOfThread);
  const auto of_team = [&](int team) { return with_team(kernel, order, limits, largest, schedule, team); };
  Schedule chosen = of_team(schedule.team);
  while (chosen.team / 2 >= least) {
    const Schedule halved = of_team(chosen.team / 2);
    const bool has_space = chunks_of_thread(order, halved) <= tuning::kChunksOfThread &&
                           (!kernel.has_column_sum() || elements_of_thread(order, halved) <= tuning::kElementsWithColumnSums);
    const bool wants_chunks = has_space && fits_registers(kernel, halved);
    const bool wants_registers = is_crowded(chosen) && halved.column_registers && !fits_registers(kernel, chosen);
    // Of two groups on a multiprocessor, one loads while the other reduces. They read the row again from the cache.
    const bool wants_company =
        chosen.cluster && is_crowded(chosen) && bytes_copied_ahead(kernel, order, halved) <= tuning::kCachedBytesOfGroup;
    if (!wants_chunks && !wants_registers && !wants_company) break;
    chosen = halved;
  }
  return chosen;
}

}  // namespace

std::string describe(const Schedule& schedule) { return schedule_text::describe(schedule); }

std::optional<Schedule> schedule_of(std::string_view description) { return schedule_text::parse<Schedule>(description); }

Schedule choose_schedule(const Kernel& kernel, const DeviceLimits& limits) {
  const LegalSchedules legal = legal_schedules(kernel, limits);
  const int largest = legal.context().largest_group;
  const SumOrder& order = legal.context().order;
  Schedule schedule = *legal.begin();  // as many threads as possible share a row
  if (schedule.flat) {
    schedule.rows_per_group = std::min(tuning::kFlatGroup, largest);
    return schedule;
  }
  if (!rows_are_adjacent(kernel)) return choose_team(kernel, order, limits, largest, schedule);
  choose_transposed_team(order, largest, schedule);
  schedule.split = wants_split(kernel, order, limits, schedule);
  choose_registers(kernel, order, schedule);
  return schedule;
}

int chunks_of_thread(const SumOrder& order, const Schedule& schedule) { return order.steps * (order.lanes / schedule.team); }

int elements_of_thread(const SumOrder& order, const Schedule& schedule) {
  return order.chunk * chunks_of_thread(order, schedule);
}

bool may_be_cluster(const Kernel& kernel, const SumOrder& order, int cluster_groups, const Schedule& schedule) {
  return !schedule.rows_adjacent && !is_one_block(kernel, order) && unrolls_chunks(order, schedule) &&
         blocks_of_row(kernel, order) <= cluster_groups;
}

std::vector<int> args_copied_ahead(const Kernel& kernel, int vector) {
  std::vector<int> args;
  for (size_t a = 0; a < kernel.args.size(); ++a) {
    const Arg& arg = kernel.args[a];
    const bool has_loads = std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const kernel::Node& n) {
      return n.kind == kernel::NodeKind::load && n.per_element && n.arg == static_cast<int>(a);
    });
    const bool differs =
        std::any_of(arg.strides.begin(), arg.strides.begin() + kernel.outer_rank, [](int64_t s) { return s != 0; });
    const bool in_chunks =
        arg.strides.back() == 1 && bits_of(arg.dtype) >= 8 && bytes_of(arg.dtype, vector) % tuning::kAccessBytes == 0;
    if (has_loads && differs && in_chunks && !arg.output) args.push_back(static_cast<int>(a));
  }
  return args;
}

int bytes_copied_ahead(const Kernel& kernel, const SumOrder& order, const Schedule& schedule) {
  int64_t bytes = 0;
  for (const int a : args_copied_ahead(kernel, schedule.vector))
    bytes += bytes_of(kernel.arg(a).dtype, int64_t{schedule.group_size()} * elements_of_thread(order, schedule));
  return static_cast<int>(bytes);
}

int local_bytes_of_copies(const Kernel& kernel, const SumOrder& order, const Schedule& schedule) {
  return tuning::kRowsInLocalMemory * bytes_copied_ahead(kernel, order, schedule);
}

// Beside what the reductions need.
bool may_copy_ahead(const Kernel& kernel, const SumOrder& order, int local_bytes, const Schedule& s) {
  if (s.flat || s.split || s.rows_adjacent || !unrolls_chunks(order, s)) return false;
  if (!s.together && !is_one_block(kernel, order)) return false;
  const int bytes = local_bytes_of_copies(kernel, order, s);
  return bytes > 0 && bytes + tuning::kLocalBytesOfReductions <= local_bytes;
}

bool unrolls_chunks(const SumOrder& order, const Schedule& schedule) {
  return chunks_of_thread(order, schedule) <= tuning::kMostUnrolledChunks;
}

kernel::LoopPolicy loop_policy(const Kernel& kernel, const Schedule& schedule) {
  const SumOrder order = sum_order(kernel);
  kernel::LoopPolicy policy{.moments_by_block = !schedule.flat && !is_one_block(kernel, order)};
  if (schedule.live_words == 0) return policy;
  const int elements = elements_of_thread(order, schedule);
  policy.live_size = [elements](const kernel::Node& n, kernel::CostClass cost) {
    const bool is_worth_it = n.kind == kernel::NodeKind::load || cost == kernel::CostClass::function;
    return !is_worth_it ? 0 : elements * words_of(n.type);
  };
  policy.keeps_loads_first = true;
  policy.live_space = schedule.live_words;
  if (schedule.column_registers) policy.live_space -= elements * column_sums(kernel);
  return policy;
}

std::string name_of(const Kernel& kernel, const Schedule& schedule) {
  if (schedule.flat) return "flat";
  const std::string columns = kernel.has_column_sum() ? " columns" : "";
  if (schedule.split) return "split" + columns;
  if (schedule.together) return (schedule.cluster ? "cluster" : "together") + columns;
  if (schedule.rows_adjacent) return "transposed";
  return (schedule.team < tuning::kWarp ? "packed" : schedule.team == tuning::kWarp ? "warp" : "block") + columns;
}

}  // namespace lamina::gpu
