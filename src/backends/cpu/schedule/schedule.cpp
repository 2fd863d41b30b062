#include "backends/cpu/schedule/schedule.h"

#include "backends/schedule/schedule_text.h"

namespace lamina::cpu {

std::string describe(const Schedule& schedule) { return schedule_text::describe(schedule); }

std::optional<Schedule> schedule_of(std::string_view description) { return schedule_text::parse<Schedule>(description); }

Schedule without_streaming(Schedule schedule) {
  schedule.streamed.clear();
  schedule.follows_lines = schedule.realigns = false;
  return schedule;
}

}  // namespace lamina::cpu
