// How the CPU runs a kernel: the choices that do not change the bits of results.
//
// `cached`: lanes are elements of a row, and each phase walks the row again, from the first- or second-level cache. `split`,
// for few long rows and for rows that overflow the second-level cache: a row's blocks are divided among threads, phase by
// phase, and the blocks' results are combined in their order, as by a single thread. `transposed`: lanes are rows, as many as
// one or a few vectors have. It is used for rows whose elements are not contiguous while those of neighbouring rows are
// (blocked and channels-last formats), and for rows too short to fill vectors or to pay for folding one, which are transposed
// in registers.
//
// A *strip* is a block of columns that all rows of a tile complete before any continues (loop tiling across columns). "Column
// block" is a different term: the rows of one partial column sum (kernels/numerics.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/schedule/machine.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// The distance between the elements of two neighbouring rows at the same position.
enum class LaneStep { none, one, other };

// schedule_fields.def documents each field. A new field only needs its line there, and the walk that uses it.
struct Schedule {
#define LAMINA_FIELD(type, name, usual, ...) type name = usual;
#include "backends/cpu/schedule/schedule_fields.def"

  // The fields in their order: visit(name, pointer to member).
  template <typename Visit>
  static constexpr void for_each_field(const Visit& visit) {
#define LAMINA_FIELD(type, name, usual, ...) visit(#name, &Schedule::name);
#include "backends/cpu/schedule/schedule_fields.def"
  }
  bool operator==(const Schedule&) const = default;
};

// The fields that differ from those of Schedule{} (backends/schedule/schedule_text.h).
std::string describe(const Schedule& schedule);
std::optional<Schedule> schedule_of(std::string_view description);

// Moves the outer dim whose rows are best as lanes to the last position, if that has the lowest predicted time. Kernels with
// column sums keep their order, because they are added in the order of rows.
kernel::Kernel with_rows_arranged(kernel::Kernel kernel, const Machine& machine);

// The schedule of whole rows with the lowest predicted time (cost_model.h). `may_stream`: outputs may be streamed. The
// kernel is a result of with_rows_arranged.
Schedule choose_schedule(const kernel::Kernel& kernel, const Machine& machine, bool may_stream);

// An equivalent schedule for outputs that cannot be written past the caches.
Schedule without_streaming(Schedule schedule);

// Whether `threads` threads are faster with parts of rows (split_schedule) than with whole ones.
bool gains_by_split(const Schedule& whole, const kernel::Kernel& kernel, const Machine& machine, int threads);

// The schedule for rows whose columns are divided among threads, streamed like `schedule`, which must be legal.
Schedule split_schedule(const Schedule& schedule, const kernel::Kernel& kernel, const Machine& machine);

}  // namespace lamina::cpu
