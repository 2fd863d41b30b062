#include "backends/cpu/schedule/legal_schedules.h"

#include <algorithm>
#include <initializer_list>

#include "backends/cpu/schedule/lane_order.h"
#include "backends/cpu/schedule/sharing.h"
#include "backends/cpu/schedule/streaming.h"
#include "backends/cpu/schedule/tiles.h"

namespace lamina::cpu {

namespace {

using kernel::Kernel;

// ---- functions that compute the candidates in schedule_fields.def

template <typename T>
std::vector<T> only(T value) {
  return {std::move(value)};
}

// If there is a choice, the usual value comes first.
std::vector<bool> yes_or_no_if(bool is_a_choice, bool usual) {
  return is_a_choice ? std::vector<bool>{usual, !usual} : std::vector<bool>{usual};
}

std::vector<bool> may_be(bool is_a_choice) { return yes_or_no_if(is_a_choice, false); }

std::vector<std::vector<int>> none_or(std::vector<int> args) {
  std::vector<std::vector<int>> lists{{}};
  if (!args.empty()) lists.push_back(std::move(args));
  return lists;
}

std::vector<int> vector_widths(const Machine& machine) {
  std::vector<int> widths;
  for (int bits = vector_bits(machine); bits >= targets::generic.vector_bits; bits /= 2) widths.push_back(bits);
  return widths;
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

// ---- a field of any type

struct Field {
  // Sets the field to value number `choice`, if it exists. Returns the number of values.
  size_t (*set)(const ScheduleContext& context, Schedule& schedule, size_t choice);
  // Returns the index of the field's value among those, or their number if it is not one of them.
  size_t (*find)(const ScheduleContext& context, const Schedule& schedule);
};

template <auto member, auto candidates>
constexpr Field field_of() {
  return {
      .set =
          [](const ScheduleContext& context, Schedule& schedule, size_t choice) {
            const auto values = candidates(context, schedule);
            if (choice < values.size()) schedule.*member = values[choice];
            return values.size();
          },
      .find =
          [](const ScheduleContext& context, const Schedule& schedule) {
            const auto values = candidates(context, schedule);
            return static_cast<size_t>(std::find(values.begin(), values.end(), schedule.*member) - values.begin());
          },
  };
}

#define LAMINA_FIELD(type, name, usual, ...)                                              \
  std::vector<type> candidates_of_##name([[maybe_unused]] const ScheduleContext& context, \
                                         [[maybe_unused]] const Schedule& s) {            \
    return __VA_ARGS__;                                                                   \
  }
#include "backends/cpu/schedule/schedule_fields.def"

constexpr Field kFields[] = {
#define LAMINA_FIELD(type, name, usual, ...) field_of<&Schedule::name, candidates_of_##name>(),
#include "backends/cpu/schedule/schedule_fields.def"
};
static_assert(std::size(kFields) == schedule_field_count());

size_t count_of(const Field& field, const ScheduleContext& context, Schedule& schedule) {
  return field.set(context, schedule, 0);
}

}  // namespace

LegalSchedules::Iterator::Iterator(const ScheduleContext& context) : context_(&context) { fill_from(0); }

// Sets this field and all later ones to their first value.
void LegalSchedules::Iterator::fill_from(size_t field) {
  for (; field < std::size(kFields); ++field) {
    choices_[field] = 0;
    counts_[field] = kFields[field].set(*context_, schedule_, 0);
  }
}

LegalSchedules::Iterator& LegalSchedules::Iterator::operator++() {
  size_t field = std::size(kFields);
  while (field > 0 && choices_[field - 1] + 1 == counts_[field - 1]) --field;
  is_done_ = field == 0;
  if (is_done_) return *this;
  kFields[field - 1].set(*context_, schedule_, ++choices_[field - 1]);
  fill_from(field);
  return *this;
}

LegalSchedules::LegalSchedules(const Kernel& kernel, const Machine& machine)
    : context_{kernel, machine, footprint(kernel), may_be_transposed(kernel), may_be_split(kernel)} {}

bool LegalSchedules::contains(const Schedule& schedule) const {
  return std::all_of(std::begin(kFields), std::end(kFields), [&](const Field& field) {
    Schedule so_far = schedule;
    return field.find(context_, schedule) < count_of(field, context_, so_far);
  });
}

Schedule LegalSchedules::sample(std::mt19937_64& random) const {
  Schedule schedule;
  for (const Field& field : kFields) {
    const size_t count = count_of(field, context_, schedule);
    field.set(context_, schedule, static_cast<size_t>(random() % count));
  }
  return schedule;
}

std::vector<Schedule> LegalSchedules::neighbours_from(size_t first_field, const Schedule& schedule) const {
  std::vector<Schedule> found;
  for (size_t changed = first_field; changed < std::size(kFields); ++changed) {
    Schedule other = schedule;
    const size_t own = kFields[changed].find(context_, schedule), count = count_of(kFields[changed], context_, other);
    for (size_t choice = 0; choice < count; ++choice) {
      if (choice == own) continue;
      other = schedule;
      kFields[changed].set(context_, other, choice);
      for (size_t behind = changed + 1; behind < std::size(kFields); ++behind) {
        Schedule first = other;
        if (kFields[behind].find(context_, other) >= count_of(kFields[behind], context_, first)) other = first;
      }
      found.push_back(other);
    }
  }
  return found;
}

}  // namespace lamina::cpu
