// The legal schedules of a kernel: the product of the fields of a schedule_fields.def. The values of a field depend on a
// context (the kernel, the device) and the fields before it. All schedules of a product give the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <random>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace lamina {

// A field of any type.
template <typename Schedule, typename Context>
struct ScheduleField {
  // Sets the field to value number `choice`, if it exists. Returns the number of values.
  size_t (*set)(const Context& context, Schedule& schedule, size_t choice);
  // Returns the index of the field's value among those, or their number if it is not one of them.
  size_t (*find)(const Context& context, const Schedule& schedule);
};

// `Candidates`: a lambda without captures that returns the legal values as a vector, given a schedule with the fields before
// this one set.
template <typename Schedule, typename Context, auto member, typename Candidates>
constexpr ScheduleField<Schedule, Context> field_of(Candidates /*candidates*/) {
  return {
      .set =
          [](const Context& context, Schedule& schedule, size_t choice) {
            const auto values = Candidates{}(context, schedule);
            if (choice < values.size()) schedule.*member = values[choice];
            return values.size();
          },
      .find =
          [](const Context& context, const Schedule& schedule) {
            const auto values = Candidates{}(context, schedule);
            return static_cast<size_t>(std::find(values.begin(), values.end(), schedule.*member) - values.begin());
          },
  };
}

// The definition of LAMINA_FIELD that makes a list of fields of a schedule_fields.def. The column of candidates sees `context`
// and `s`, the schedule.
#define LAMINA_LEGAL_FIELD(Schedule, Context, type, name, ...)                                               \
  ::lamina::field_of<Schedule, Context, &Schedule::name>(                                                    \
      []([[maybe_unused]] const Context& context, [[maybe_unused]] const Schedule& s) -> std::vector<type> { \
        return __VA_ARGS__;                                                                                  \
      }),

// Values of fields. If there is a choice, the usual value comes first.
namespace candidates {

template <typename T>
std::vector<T> only(T value) {
  return {std::move(value)};
}
inline std::vector<bool> yes_or_no_if(bool is_a_choice, bool usual) {
  return is_a_choice ? std::vector<bool>{usual, !usual} : std::vector<bool>{usual};
}
inline std::vector<bool> may_be(bool is_a_choice) { return yes_or_no_if(is_a_choice, false); }

}  // namespace candidates

template <typename Schedule, typename Context>
class LegalProduct {
 public:
  using Fields = std::span<const ScheduleField<Schedule, Context>>;

  // Iterates over the product, and creates each schedule when it is reached.
  class Iterator {
   public:
    using value_type = Schedule;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(const LegalProduct& product)
        : product_(&product), choices_(product.fields_.size()), counts_(product.fields_.size()) {
      fill_from(0);
    }
    const Schedule& operator*() const { return schedule_; }
    Iterator& operator++() {
      size_t field = choices_.size();
      while (field > 0 && choices_[field - 1] + 1 == counts_[field - 1]) --field;
      is_done_ = field == 0;
      if (is_done_) return *this;
      product_->fields_[field - 1].set(product_->context_, schedule_, ++choices_[field - 1]);
      fill_from(field);
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return is_done_; }

   private:
    // Sets this field and all later ones to their first value.
    void fill_from(size_t field) {
      for (; field < choices_.size(); ++field) {
        choices_[field] = 0;
        counts_[field] = product_->fields_[field].set(product_->context_, schedule_, 0);
      }
    }
    const LegalProduct* product_;
    Schedule schedule_;
    std::vector<size_t> choices_, counts_;
    bool is_done_ = false;
  };

  // What the context refers to must outlive this.
  LegalProduct(Context context, Fields fields) : context_(std::move(context)), fields_(fields) {}

  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

  const Context& context() const { return context_; }
  bool contains(const Schedule& schedule) const {
    return std::all_of(fields_.begin(), fields_.end(),
                       [&](const auto& field) { return field.find(context_, schedule) < count_of(field, schedule); });
  }
  // A random schedule: each field gets any of its values.
  Schedule sample(std::mt19937_64& random) const {
    Schedule schedule;
    for (const auto& field : fields_) field.set(context_, schedule, static_cast<size_t>(random() % count_of(field, schedule)));
    return schedule;
  }
  // The schedules in which one field has another value; later fields keep theirs if they are still legal. `schedule` is
  // legal.
  std::vector<Schedule> neighbours(const Schedule& schedule) const { return neighbours_from(0, schedule); }
  // The same for the fields from `first` on.
  template <typename T>
  std::vector<Schedule> neighbours(const Schedule& schedule, T Schedule::* first) const {
    return neighbours_from(number_of(first), schedule);
  }

 private:
  // The index of a field in the list.
  template <typename T>
  static size_t number_of(T Schedule::* field) {
    size_t number = 0, found = 0;
    Schedule::for_each_field([&](const char*, const auto& other) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(other)>, T Schedule::*>) {
        if (other == field) found = number;
      }
      ++number;
    });
    return found;
  }

  size_t count_of(const ScheduleField<Schedule, Context>& field, Schedule schedule) const {
    return field.set(context_, schedule, 0);
  }

  std::vector<Schedule> neighbours_from(size_t first_field, const Schedule& schedule) const {
    std::vector<Schedule> found;
    for (size_t changed = first_field; changed < fields_.size(); ++changed) {
      const size_t own = fields_[changed].find(context_, schedule), count = count_of(fields_[changed], schedule);
      for (size_t choice = 0; choice < count; ++choice) {
        if (choice == own) continue;
        Schedule other = schedule;
        fields_[changed].set(context_, other, choice);
        for (size_t behind = changed + 1; behind < fields_.size(); ++behind) {
          Schedule with_first = other;
          if (fields_[behind].find(context_, other) >= fields_[behind].set(context_, with_first, 0)) other = with_first;
        }
        found.push_back(std::move(other));
      }
    }
    return found;
  }

  Context context_;
  Fields fields_;
};

}  // namespace lamina
