// A schedule as text: the fields that differ from their usual values, as "name value, name value". Tuning stores schedules this
// way, and keys of code contain it.
//
// A schedule is a struct whose fields are listed in a schedule_fields.def. It has the usual values when it is made, and
// `for_each_field(visit)` calls visit(name, pointer to member) for each field in the order of the list.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "interface/status.h"

namespace lamina::schedule_text {

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

// Parses a number that must be the entire `text`.
template <typename T>
bool read(std::string_view text, T& value) {
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  value = static_cast<T>(number);
  return error == std::errc{} && stop == text.data() + text.size() && static_cast<int64_t>(value) == number;
}

// Removes and returns the text up to the separator, and removes the separator.
inline std::string_view take_until(std::string_view& text, std::string_view separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + separator.size()));
  return part;
}

template <typename T>
bool read(std::string_view text, std::vector<T>& values) {
  values.clear();
  while (!text.empty()) {
    if (!read(take_until(text, " "), values.emplace_back())) return false;
  }
  return !values.empty();
}

template <typename Schedule>
std::string describe(const Schedule& schedule) {
  static const Schedule usual;
  std::string text;
  Schedule::for_each_field([&](const char* name, const auto& field) {
    if (schedule.*field != usual.*field) text += join(text.empty() ? "" : ", ", name, " ", text_of(schedule.*field));
  });
  return text;
}

// Parses such a text; nothing if it is invalid. The schedule may not be legal for a kernel.
template <typename Schedule>
std::optional<Schedule> parse(std::string_view description) {
  Schedule schedule;
  std::string_view text = description;
  while (!text.empty()) {
    std::string_view field = take_until(text, ", ");
    const std::string_view name = take_until(field, " ");
    bool is_read = false;
    Schedule::for_each_field([&](const char* known, const auto& member) {
      if (name == known) is_read = read(field, schedule.*member);
    });
    if (!is_read) return std::nullopt;
  }
  if (describe(schedule) != description) return std::nullopt;
  return schedule;
}

}  // namespace lamina::schedule_text
