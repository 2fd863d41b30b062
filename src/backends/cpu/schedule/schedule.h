// How the CPU runs a kernel: the choices that change no bit of a result.
//
// `cached`: lanes are elements of a row; each phase walks the row again, out of L1 or L2. `split`, for few long rows
// and for rows that overflow the second-level cache: a row's blocks are divided among threads, phase by phase, and what the
// blocks come to is combined in their order, as one thread would. `transposed`: lanes are rows, so many at a time as a vector
// has lanes, or a few vectors; for rows whose elements do not lie side by side while those of neighbouring rows do (blocked and
// channels-last formats), and for rows too short to fill vectors or to pay for folding one, which are transposed in registers.
//
// A *strip* is a block of columns that all rows of a tile go through before any goes on (loop tiling across columns; "column
// block" is kept for the rows behind one partial column sum, see kernels/numerics.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/schedule/machine.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// The distance between the elements that two neighbouring rows have at the same position.
enum class LaneStep { none, one, other };

// What each field means stands in schedule_fields.def, which is all that a new one needs beside the walk that follows it.
struct Schedule {
#define LAMINA_FIELD(type, name, usual, ...) type name = usual;
#include "backends/cpu/schedule/schedule_fields.def"

  bool operator==(const Schedule&) const = default;
};

// The fields of a schedule in their order: visit(name, pointer to member).
template <typename Visit>
constexpr void for_each_field(const Visit& visit) {
#define LAMINA_FIELD(type, name, usual, ...) visit(#name, &Schedule::name);
#include "backends/cpu/schedule/schedule_fields.def"
}

// Each field that is not as in Schedule{}: a part of code caches' keys.
std::string describe(const Schedule& schedule);

// The schedule that such a text describes; nothing if it is none. Whether it is legal for a kernel is another question
// (legal_schedules.h).
std::optional<Schedule> schedule_of(std::string_view description);

// What the cost model takes for the fastest (cost_model.h), rows whole. `may_stream`: outputs may be streamed. The kernel is
// as with_rows_arranged leaves it.
Schedule choose_schedule(const kernel::Kernel& kernel, const Machine& machine, bool may_stream);

// A schedule that is as good where `schedule.streamed` can not be written past the caches.
Schedule without_streaming(Schedule schedule);

// Whether so many threads are done earlier with parts of rows, by split_schedule, than with whole ones.
bool gains_by_split(const Schedule& whole, const kernel::Kernel& kernel, const Machine& machine, int threads);

// The same for rows whose columns are divided among threads, streamed as `schedule` is, which is legal.
Schedule split_schedule(const Schedule& schedule, const kernel::Kernel& kernel, const Machine& machine);

}  // namespace lamina::cpu
