#include "backends/cpu/schedule/schedule.h"

#include "backends/cpu/schedule/lane_order.h"
#include "backends/cpu/schedule/streaming.h"
#include "backends/cpu/schedule/tiles.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// How many fields an aggregate has: so many values, and no more, can initialise it.
struct AnyValue {
  template <typename T>
  operator T() const;
};

template <typename Aggregate, typename... Values>
constexpr size_t field_count() {
  if constexpr (requires { Aggregate{Values{}..., AnyValue{}}; })
    return field_count<Aggregate, Values..., AnyValue>();
  else
    return sizeof...(Values);
}

constexpr size_t listed_fields() {
  size_t count = 0;
  for_each_field([&](const char*, const auto&) { ++count; });
  return count;
}

static_assert(listed_fields() == field_count<Schedule>(), "a field of Schedule is missing in for_each_field");

template <typename T>
std::string text_of(const T& value) {
  return std::to_string(static_cast<int64_t>(value));
}

template <typename T>
std::string text_of(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : " ") + text_of(value);
  return text;
}

}  // namespace

std::string describe(const Schedule& schedule) {
  static const Schedule usual;
  std::string text;
  for_each_field([&](const char* name, const auto& field) {
    if (schedule.*field != usual.*field) text += join(text.empty() ? "" : ", ", name, " ", text_of(schedule.*field));
  });
  return text;
}

Schedule choose_schedule(const kernel::Kernel& kernel, const Machine& machine, bool past_caches) {
  Schedule schedule;
  schedule.vector_bits = vector_bits(machine.isa);
  schedule.rows_per_tile = rows_per_tile(kernel);
  choose_lanes(schedule, kernel);
  if (past_caches) choose_streaming(schedule, kernel);
  const Footprint bytes = footprint(kernel);
  if (!schedule.transposed) choose_strips(schedule, kernel, bytes, machine.caches);
  choose_prefetching(schedule, kernel, bytes, machine.caches);
  return schedule;
}

Schedule split_schedule(Schedule schedule, const kernel::Kernel& kernel) {
  schedule.split = true;
  schedule.follows_lines = schedule.follows_lines || schedule.realigns;
  schedule.realigns = false;
  schedule.prefetches_late = true;  // the rows between two barriers are more than a tile
  schedule.prefetches_to_first = reads_several_streams(kernel);
  choose_strips_of_split_rows(schedule, kernel);
  return schedule;
}

}  // namespace lamina::cpu
