// Chooses the schedule of a kernel without measurements: the one with the lowest predicted time.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cpu/schedule/cost_model.h"
#include "backends/cpu/schedule/lane_order.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/schedule/sharing.h"
#include "backends/cpu/schedule/streaming.h"
#include "backends/cpu/schedule/tiles.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

namespace {

using kernel::Kernel;

constexpr int kRowsOfStrip = 4;
constexpr int64_t kColumnsOfStrip = 1024;
constexpr int64_t kTilesOfWait = 8;  // in the second level: tiles read there in addition to the data that rows share
// ratio of predicted times below which another schedule is chosen; the model is not more accurate
constexpr double kGain = 0.985;

struct TimedSchedule {
  Schedule schedule;
  double nanoseconds_of_row = std::numeric_limits<double>::infinity();
};

class HillClimb {
 public:
  HillClimb(const Kernel& kernel, const Machine& machine) : legal_(legal_schedules(kernel, machine)), model_(kernel, machine) {}

  // Moves to the best neighbour, which differs in one field, as long as it gains and `may` allows it.
  template <typename May>
  Schedule from(Schedule schedule, const May& may) const {
    double time = model_.nanoseconds_of_row(schedule);
    while (true) {
      double best = kGain * time;
      std::optional<Schedule> next;
      for (Schedule& other : legal_.neighbours(schedule, &Schedule::streamed)) {
        if (!may(other)) continue;
        const double other_time = model_.nanoseconds_of_row(other);
        if (!(other_time < best)) continue;
        best = other_time;
        next = std::move(other);
      }
      if (!next) return schedule;
      schedule = *std::move(next);
      time = best;
    }
  }

  template <typename May>
  TimedSchedule best_from(const std::vector<Schedule>& all, const May& may) const {
    TimedSchedule best;
    for (const Schedule& start : all) {
      Schedule other = from(start, may);
      const double time = model_.nanoseconds_of_row(other);
      if (time < kGain * best.nanoseconds_of_row) best = {std::move(other), time};
    }
    return best;
  }

  const LegalSchedules& legal() const { return legal_; }

 private:
  LegalSchedules legal_;
  CostModel model_;
};

// Whether the positions of a row are far apart, so that several vectors of rows read runs of several lines.
bool positions_lie_apart(const Kernel& kernel, int lanes) {
  const size_t lane_dim = static_cast<size_t>(kernel.outer_rank) - 1;
  return std::any_of(kernel.args.begin(), kernel.args.end(), [&](const kernel::Arg& arg) {
    return varies_along_row(kernel, arg) && arg.strides[lane_dim] != 0 && arg.strides.back() > lanes;
  });
}

// The schedules whose lanes are rows, if there are any: with vectors as wide as possible, and with half of their width. A rule
// decides the number of vectors per group, because the model does not describe how lines are fetched.
std::vector<Schedule> across_rows(const Kernel& kernel, const Machine& machine) {
  std::vector<Schedule> all;
  if (!may_be_transposed(kernel)) return all;
  for (int bits = bits_across_rows(machine); all.size() < 2 && bits >= targets::generic.vector_bits; bits /= 2) {
    Schedule schedule;
    schedule.transposed = true;
    schedule.vector_bits = bits;
    const std::vector<int> sizes = group_sizes(kernel, bits);
    schedule.rows_per_group = sizes[positions_lie_apart(kernel, sizes[0]) && sizes.size() > 1 ? 1 : 0];
    schedule.whole_groups = fills_groups(kernel, schedule.rows_per_group);
    schedule.lane_steps = lane_steps(kernel);
    all.push_back(std::move(schedule));
  }
  return all;
}

// Two rows load the sums of columns half as often. But two that store parts of lines in turns take longer.
int rows_of_a_strip(const Kernel& kernel, Schedule schedule, const Machine& machine) {
  schedule.rows_together = 2;
  const auto sends_parts = [&](int a) { return stores_of_parts(kernel, kernel.arg(a), schedule, machine) > 0; };
  const auto splits_lines = [&](const kernel::Arg& arg) { return splits_lines_in_turns(kernel, arg, schedule); };
  const bool any = std::any_of(schedule.streamed.begin(), schedule.streamed.end(), sends_parts) ||
                   (schedule.streamed.empty() && std::any_of(kernel.args.begin(), kernel.args.end(), splits_lines));
  return kernel.has_column_sum() && !any ? 2 : 1;
}

// The start schedules differ in several fields: tiles of rows in strips from single rows, and streams of whole lines from
// stores through the caches. Schedules in between are no faster, so the climb would not find these.
std::vector<Schedule> starts(const Kernel& kernel, const Machine& machine, const LegalSchedules& legal, bool may_stream) {
  const Schedule first = *legal.begin();
  Schedule in_strips = first, as_stream = first;
  in_strips.rows_per_tile = kRowsOfStrip;
  in_strips.strip = kColumnsOfStrip;
  if (may_stream) in_strips.streamed = streamable_args(kernel, first);
  in_strips.rows_together = rows_of_a_strip(kernel, in_strips, machine);
  in_strips.streamed.clear();
  const bool is_long = kTilesOfWait * kRowsOfStrip * footprint(kernel).read >= machine.caches.second;
  // the next rows are too large for the cache together with the data that rows share
  in_strips.prefetches_late = is_long && may_prefetch_rows(kernel, in_strips);
  as_stream.streamed = streamable_args(kernel, first);
  as_stream.realigns = true;
  std::vector<Schedule> all;  // the first of equal ones is used
  if (may_stream && legal.contains(as_stream)) all.push_back(as_stream);
  all.push_back(first);
  if (legal.contains(in_strips)) all.insert(kernel.has_column_sum() ? all.begin() : all.end(), in_strips);
  for (Schedule& across : across_rows(kernel, machine)) all.push_back(std::move(across));
  return all;
}

// A tile stays in the second-level cache between its walks.
bool overflows_wait(const Kernel& kernel, const Schedule& schedule, const Machine& machine) {
  return schedule.rows_per_tile > 1 && static_cast<double>(schedule.rows_per_tile * footprint(kernel).read) >
                                           tuning::kRoomOfCache * static_cast<double>(machine.caches.second);
}

// A rule, because the model does not describe the cause: with column sums, f32 rows whose walks start at different elements
// are slower in tiles, and with prefetches within the row.
bool is_slow_along_lines(const Kernel& kernel, const Schedule& schedule) {
  return schedule.follows_lines && (schedule.rows_per_tile > 1 || !schedule.prefetched_within_row.empty()) &&
         schedule.strip == 0 && kernel.has_column_sum() && footprint(kernel).converted == 0;
}

// Another rule: sharing a loop among more than two rows gains in strips. But short rows are slower in some processes, and
// rows that start at the same offset of a page, in any arg, compete for the same few lines of the first level.
bool crowds_loop(const Kernel& kernel, const Schedule& schedule) {
  const bool any_alike = std::any_of(kernel.args.begin(), kernel.args.end(), [&](const kernel::Arg& arg) {
    return varies_by_row(kernel, arg) && varies_along_row(kernel, arg) && begin_alike(kernel, arg, 2);
  });
  return schedule.rows_together > 2 && (schedule.strip == 0 || any_alike);
}

// Searches from the start schedules, or only from the one whose lanes are rows. Without a start the time is infinite.
enum class From { all, across_rows };
TimedSchedule fastest(const Kernel& kernel, const Machine& machine, bool may_stream, From from = From::all) {
  const HillClimb climb(kernel, machine);
  const auto may = [&](const Schedule& s) {
    return (may_stream || s.streamed.empty()) && !is_slow_along_lines(kernel, s) && !crowds_loop(kernel, s) &&
           !overflows_wait(kernel, s, machine);
  };
  std::vector<Schedule> all = starts(kernel, machine, climb.legal(), may_stream);
  std::erase_if(all, [&](const Schedule& s) { return !may(s) || (from == From::across_rows && !s.transposed); });
  return climb.best_from(all, may);
}

Kernel with_last(Kernel kernel, size_t dim) {
  const size_t last = static_cast<size_t>(kernel.outer_rank) - 1;
  const auto move_last = [&](Dims& dims) {
    const auto at = [&](size_t d) { return dims.begin() + static_cast<std::ptrdiff_t>(d); };
    std::rotate(at(dim), at(dim + 1), at(last + 1));
  };
  move_last(kernel.extents);
  for (kernel::Arg& arg : kernel.args) move_last(arg.strides);
  for (kernel::Node& node : kernel.nodes) {
    if (node.kind == kernel::NodeKind::index) move_last(node.coefficients);
  }
  return kernel;
}

}  // namespace

Kernel with_rows_arranged(Kernel kernel, const Machine& machine) {
  if (kernel.outer_rank < 2 || kernel.has_column_sum()) return kernel;
  std::optional<Kernel> best;
  double time = fastest(kernel, machine, true).nanoseconds_of_row;
  for (int dim = kernel.outer_rank - 2; dim >= 0; --dim) {
    Kernel arranged = with_last(kernel, static_cast<size_t>(dim));
    const double other = fastest(arranged, machine, true, From::across_rows).nanoseconds_of_row;
    if (other >= kGain * time) continue;
    best = std::move(arranged);
    time = other;
  }
  return best ? *std::move(best) : std::move(kernel);
}

Schedule choose_schedule(const Kernel& kernel, const Machine& machine, bool may_stream) {
  return fastest(kernel, machine, may_stream).schedule;
}

bool gains_by_split(const Schedule& whole, const Kernel& kernel, const Machine& machine, int threads) {
  if (threads < 2 || whole.transposed || kernel.row_count() == 0 || !may_be_split(kernel)) return false;
  Machine sharing = machine;
  sharing.cores = threads;
  const CostModel model(kernel, sharing);
  return model.is_worth_threads() && model.microseconds(split_schedule(whole, kernel, sharing)) < model.microseconds(whole);
}

// A rule, because the model does not describe how threads affect each other's caches. There are more rows than a tile between
// two barriers: they are prefetched late, into the first level if there are several inputs. If rows sum columns, or the walk
// of each row would start at another element, four rows run in strips.
Schedule split_schedule(const Schedule& whole, const Kernel& kernel, const Machine& machine) {
  Schedule schedule;
  schedule.vector_bits = whole.vector_bits;
  schedule.split = true;
  schedule.streamed = whole.streamed;
  schedule.follows_lines = begins_within_lines(kernel, schedule);
  const bool in_strips = kernel.has_column_sum() || (schedule.follows_lines && footprint(kernel).shared > 0);
  if (in_strips && kernel.row_size() > 2 * kColumnsOfStrip && !computes_functions(kernel, kernel.phase_count() - 1)) {
    schedule.rows_per_tile = kRowsOfStrip;
    schedule.strip = kColumnsOfStrip;
    if (!schedule.follows_lines) schedule.rows_together = rows_of_a_strip(kernel, schedule, machine);
  }
  const std::vector<int> inputs = inputs_along_rows(kernel);
  if (may_prefetch_rows(kernel, schedule)) {
    schedule.prefetches_late = true;
    schedule.prefetches_to_first =
        std::count_if(inputs.begin(), inputs.end(), [&](int a) { return varies_by_row(kernel, kernel.arg(a)); }) > 1;
  }
  const bool is_long = std::any_of(inputs.begin(), inputs.end(), [&](int a) {
    return 2 * bytes_of(kernel.arg(a).dtype, kernel.row_size()) > machine.caches.second;
  });
  if (is_long) schedule.prefetched_within_row = inputs;
  return schedule;
}

}  // namespace lamina::cpu
