// The forms of a profile: a table, JSON, and Chrome's trace event format.
#include <algorithm>
#include <array>

#include "compiler/profile.h"
#include "interface/json/tree.h"
#include "interface/number_text.h"
#include "interface/status.h"

namespace lamina::compiler {

namespace {

using json::Tree;

constexpr size_t kColumns = 80;

const char* name_of(StepWork::Kind kind) {
  switch (kind) {
    case StepWork::Kind::kernel: return "kernel";
    case StepWork::Kind::library: return "library";
    case StepWork::Kind::tiled: return "tiled";
  }
  return "";
}

struct Totals {
  double microseconds = 0, idle = 0, bound = 0;
  double of_bound() const { return microseconds > 0 ? bound / microseconds : 0; }
};

Totals totals_of(const std::vector<PartitionProfile>& partitions) {
  Totals totals;
  for (const PartitionProfile& partition : partitions) {
    totals.microseconds += partition.microseconds;
    totals.idle += partition.idle_microseconds;
    totals.bound += partition.bound_microseconds;
  }
  return totals;
}

// ---- the table

std::string percent(double part, double whole) { return whole > 0 ? fixed_text(100 * part / whole, 0) + '%' : "-"; }

std::string at_right(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

// The end of a kernel's name is a hash.
std::string shortened(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

// The end of a path is the name of the file.
std::string shortened_path(const std::string& text, size_t width) {
  return text.size() <= width ? text : "..." + text.substr(text.size() - (width - 3));
}

constexpr std::array<size_t, 7> kWidths = {9, 5, 7, 8, 9, 7, 6};

std::string row(const std::array<std::string, kWidths.size()>& cells, const std::string& name) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += at_right(cells[i], kWidths[i]);
  return line + "  " + shortened(name, kColumns - std::min(line.size() + 2, kColumns - 10)) + '\n';
}

std::string row(const StepProfile& step, const Totals& totals) {
  return row(
      {fixed_text(step.microseconds, 1), percent(step.microseconds, totals.microseconds), fixed_text(step.idle_microseconds, 1),
       fixed_text(static_cast<double>(step.work.bytes) * 1e-6, 2), fixed_text(step.work.arithmetic * 1e-6, 1),
       step.is_bound_by_memory ? "memory" : "fma", percent(step.bound_microseconds, step.microseconds)},
      step.work.name);
}

// ---- JSON

Tree step_to_json(const StepProfile& step) {
  return Tree::object({{"name", step.work.name},
                       {"kind", name_of(step.work.kind)},
                       {"bytes", step.work.bytes},
                       {"flops", step.work.arithmetic},
                       {"us", step.microseconds},
                       {"idle_us", step.idle_microseconds},
                       {"runs", step.runs},
                       {"bound", step.is_bound_by_memory ? "memory" : "fma"},
                       {"bound_us", step.bound_microseconds},
                       {"of_bound", step.of_bound()}});
}

Tree partition_to_json(const PartitionProfile& partition) {
  Tree steps = Tree::list();
  for (const StepProfile& step : partition.steps) steps.push_back(step_to_json(step));
  return Tree::object({{"label", partition.label},
                       {"executions", partition.executions},
                       {"us", partition.microseconds},
                       {"idle_us", partition.idle_microseconds},
                       {"bound_us", partition.bound_microseconds},
                       {"steps", steps}});
}

Tree event(const Profile::PartitionTimes& partition, size_t track, const StepTime& time, int64_t start) {
  const StepWork& work = partition.steps[time.step];
  return Tree::object({{"name", work.name},
                       {"cat", name_of(work.kind)},
                       {"ph", "X"},
                       {"ts", static_cast<double>(time.begin - start) * 1e-3},
                       {"dur", static_cast<double>(time.end - time.begin) * 1e-3},
                       {"pid", 1},
                       {"tid", track},
                       {"args", Tree::object({{"bytes", work.bytes}, {"flops", work.arithmetic}})}});
}

Tree track_name(const std::string& label, size_t track) {
  return Tree::object(
      {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", track}, {"args", Tree::object({{"name", label}})}});
}

}  // namespace

std::string profile_table(const Profile& profile, const MachineLimits& limits, const std::string& title) {
  const std::vector<PartitionProfile> partitions = summary_of(profile, limits);
  const Totals totals = totals_of(partitions);
  const std::string verdict =
      join(": ", fixed_text(totals.microseconds, 1), " us, ", percent(totals.bound, totals.microseconds),
           " of the bound reached, ", percent(totals.idle, totals.microseconds), " idle\n");
  std::string text = shortened_path(title, kColumns + 1 - std::min(verdict.size(), kColumns)) + verdict;
  text += join("bound: reads ", fixed_text(limits.read_bytes_per_second * 1e-9, 1), " GB/s, ",
               fixed_text(limits.operations_per_second * 1e-9, 1), " GFLOP/s (f32), ", limits.threads,
               limits.threads == 1 ? " thread\n" : " threads\n");
  text += row({"us", "time", "idle", "MB", "MFLOP", "bound", "of it"}, "step");
  std::vector<const StepProfile*> steps;
  for (const PartitionProfile& partition : partitions)
    for (const StepProfile& step : partition.steps) steps.push_back(&step);
  std::stable_sort(steps.begin(), steps.end(), [](const auto* a, const auto* b) { return a->microseconds > b->microseconds; });
  for (const StepProfile* step : steps) text += row(*step, totals);
  return text;
}

std::string profile_json(const Profile& profile, const MachineLimits& limits, const std::string& title) {
  const std::vector<PartitionProfile> partitions = summary_of(profile, limits);
  const Totals totals = totals_of(partitions);
  Tree list = Tree::list();
  for (const PartitionProfile& partition : partitions) list.push_back(partition_to_json(partition));
  return Tree::object({{"schema", kProfileSchema},
                       {"title", title},
                       {"machine", Tree::object({{"threads", limits.threads},
                                                 {"read_gb_per_s", limits.read_bytes_per_second * 1e-9},
                                                 {"gflops", limits.operations_per_second * 1e-9}})},
                       {"us", totals.microseconds},
                       {"idle_us", totals.idle},
                       {"bound_us", totals.bound},
                       {"of_bound", totals.of_bound()},
                       {"partitions", list}})
      .text(true);
}

std::string profile_trace(const Profile& profile) {
  const std::vector<Profile::PartitionTimes> partitions = profile.partitions();
  int64_t start = INT64_MAX;
  for (const Profile::PartitionTimes& partition : partitions)
    for (const Profile::Execution& execution : partition.executions) start = std::min(start, execution.begin);
  Tree events = Tree::list();
  for (size_t p = 0; p < partitions.size(); ++p) {
    events.push_back(track_name(partitions[p].label, p));
    for (const Profile::Execution& execution : partitions[p].executions)
      for (const StepTime& time : execution.steps) events.push_back(event(partitions[p], p, time, start));
  }
  return Tree::object({{"displayTimeUnit", "ns"}, {"traceEvents", events}}).text(false);
}

}  // namespace lamina::compiler
