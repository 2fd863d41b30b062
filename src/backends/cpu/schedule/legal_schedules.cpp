#include "backends/cpu/schedule/legal_schedules.h"

#include <initializer_list>
#include <utility>
#include <vector>

#include "backends/cpu/schedule/lane_order.h"
#include "backends/cpu/schedule/sharing.h"
#include "backends/cpu/schedule/streaming.h"
#include "backends/cpu/schedule/tiles.h"

namespace lamina::cpu {

namespace {

using kernel::Kernel;

// ---- functions that compute the candidates in schedule_fields.def

using candidates::may_be, candidates::only, candidates::yes_or_no_if;

std::vector<std::vector<int>> none_or(std::vector<int> args) {
  std::vector<std::vector<int>> lists{{}};
  if (!args.empty()) lists.push_back(std::move(args));
  return lists;
}

// The number of rows of a batch is a power of two, because their vectors are folded in pairs.
std::vector<int> tile_sizes(const Kernel& kernel, const Schedule& s) {
  const bool is_one_walk = kernel.phase_count() == 1;
  if (s.transposed || ((is_one_walk || s.split) && !kernel.has_column_sum() && !may_take_strips(kernel))) return {1};
  return batches_rows(kernel) ? std::vector{1, 2, 4, kMaxRowsInTile} : std::vector{1, 2, 3, 4, kMaxRowsInTile};
}

// Strips are candidates if there are several and several rows share them. A stream of lines continues from row to row, so it
// has none.
std::vector<int64_t> strips(const Kernel& kernel, const Schedule& s) {
  std::vector<int64_t> columns{0};
  if (s.rows_per_tile == 1 || s.transposed || s.realigns || !may_take_strips(kernel)) return columns;
  for (const int64_t strip : {512, 1024, 2048, 4096}) {
    if (strip < kernel.row_size()) columns.push_back(strip);
  }
  return columns;
}

// No inputs, the inputs in which rows have separate elements, or all inputs. Shared data of short rows are in a cache.
std::vector<std::vector<int>> none_or_inputs(const Kernel& kernel) {
  const std::vector<int> all = inputs_along_rows(kernel);
  std::vector<int> own = all;
  std::erase_if(own, [&](int a) { return !varies_by_row(kernel, kernel.arg(a)); });
  std::vector<std::vector<int>> lists{{}};
  if (!own.empty()) lists.push_back(own);
  if (all != own) lists.push_back(all);
  return lists;
}

// If the lines of a streamed output start at different elements in each row, each row has a separate loop.
std::vector<int> rows_of_a_loop(const Schedule& s) {
  std::vector<int> rows{1};
  if (s.transposed || s.follows_lines || s.realigns) return rows;
  for (const int together : {2, 4}) {
    if (together <= s.rows_per_tile) rows.push_back(together);
  }
  return rows;
}

constexpr ScheduleField<Schedule, ScheduleContext> kFields[] = {
#define LAMINA_FIELD(type, name, usual, ...) LAMINA_LEGAL_FIELD(Schedule, ScheduleContext, type, name, __VA_ARGS__)
#include "backends/cpu/schedule/schedule_fields.def"
};

}  // namespace

LegalSchedules legal_schedules(const Kernel& kernel, const Machine& machine) {
  return {{kernel, machine, footprint(kernel), may_be_transposed(kernel), may_be_split(kernel)}, kFields};
}

}  // namespace lamina::cpu
