// The results of tuning: the fastest schedule of a kernel on a device, with the measured times, under a key that says on what
// times depend. Cached in the process and, if there is a cache on disk, with the machine code (backends/cache/code_cache.h).
// Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/schedule/schedule_text.h"
#include "kernels/kernel_ir.h"

namespace lamina {

template <typename Schedule>
struct TimedSchedule {
  Schedule schedule;
  double microseconds = 0;  // per call
  bool operator==(const TimedSchedule&) const = default;
};

template <typename Schedule>
struct TunedSchedule {
  TimedSchedule<Schedule> chosen, by_default;
  std::vector<TimedSchedule<Schedule>> others;  // the fastest first
  bool operator==(const TunedSchedule&) const = default;
};

// The entries as texts.
namespace tuned_texts {

// The kernel with its extents; `where` says what else times depend on.
std::string key_of(const std::string& where, const kernel::Kernel& kernel);

using Key = std::function<std::string()>;  // called only if there can be an entry

// The entry of this key. Nothing if there is none, or `is_valid` refuses what is on disk. The disk is read once for each key:
// what another process stores there afterwards, only later processes find.
std::optional<std::string> find(const Key& key, const std::function<bool(std::string_view text)>& is_valid);

// Replaces the previous entry.
void store(const std::string& key, const std::string& text);

// Clears the cache of the process, not that on disk. For tests.
void forget();

// The format: a heading, then one time and description per line, the chosen schedule first, then the default.
struct Line {
  std::string_view schedule;
  double microseconds = 0;
};
std::string text_of(const std::vector<std::pair<std::string, double>>& lines);
std::optional<std::vector<Line>> lines_of(std::string_view text);

// "measured: " with the chosen schedule in words, its time, and the times of the others.
std::string choice(const std::string& chosen, std::string_view text);

}  // namespace tuned_texts

template <typename Schedule>
std::string text_of(const TunedSchedule<Schedule>& tuned) {
  std::vector<std::pair<std::string, double>> lines;
  const auto add = [&](const TimedSchedule<Schedule>& timed) {
    lines.emplace_back(schedule_text::describe(timed.schedule), timed.microseconds);
  };
  add(tuned.chosen);
  add(tuned.by_default);
  for (const TimedSchedule<Schedule>& other : tuned.others) add(other);
  return tuned_texts::text_of(lines);
}

template <typename Schedule>
std::optional<TunedSchedule<Schedule>> parse_tuned(std::string_view text) {
  const auto lines = tuned_texts::lines_of(text);
  if (!lines) return std::nullopt;
  std::vector<TimedSchedule<Schedule>> all;
  for (const tuned_texts::Line& line : *lines) {
    const std::optional<Schedule> schedule = schedule_text::parse<Schedule>(line.schedule);
    if (!schedule) return std::nullopt;
    all.push_back({*schedule, line.microseconds});
  }
  return TunedSchedule<Schedule>{all[0], all[1], {all.begin() + 2, all.end()}};
}

// The entry of a kernel on a device. Nothing if there is none, or it is damaged or not legal for the kernel. `Device` is what a
// backend compiles for, with these functions in its namespace:
//   std::string key_of_times(device)     what times depend on besides the kernel
//   legal_schedules(kernel, device)      a LegalProduct
template <typename Schedule, typename Device>
std::optional<TunedSchedule<Schedule>> find_tuned(const kernel::Kernel& kernel, const Device& device) {
  const auto is_valid = [&](std::string_view text) {
    const auto tuned = parse_tuned<Schedule>(text);
    return tuned && legal_schedules(kernel, device).contains(tuned->chosen.schedule);
  };
  const auto key = [&] { return tuned_texts::key_of(key_of_times(device), kernel); };
  const std::optional<std::string> text = tuned_texts::find(key, is_valid);
  return text ? parse_tuned<Schedule>(*text) : std::nullopt;
}

// Replaces the previous entry.
template <typename Schedule, typename Device>
void store_tuned(const kernel::Kernel& kernel, const Device& device, const TunedSchedule<Schedule>& tuned) {
  tuned_texts::store(tuned_texts::key_of(key_of_times(device), kernel), text_of(tuned));
}

}  // namespace lamina
