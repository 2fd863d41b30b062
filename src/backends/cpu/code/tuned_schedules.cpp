#include "backends/cpu/code/tuned_schedules.h"

#include "backends/cpu/code/cached_costs.h"
#include "backends/cpu/schedule/legal_schedules.h"

namespace lamina::cpu::tuned_schedules {

namespace {

std::string key_of(const kernel::Kernel& kernel, const Machine& machine) {
  return tuned_texts::key_of(key_of_times(machine), kernel);
}

}  // namespace

std::optional<TunedSchedule> find(const kernel::Kernel& kernel, const Machine& machine) {
  return find_tuned<Schedule>([&] { return key_of(kernel, machine); }, [&] { return legal_schedules(kernel, machine); });
}

void store(const kernel::Kernel& kernel, const Machine& machine, const TunedSchedule& tuned) {
  tuned_texts::store(key_of(kernel, machine), text_of(tuned));
}

}  // namespace lamina::cpu::tuned_schedules
