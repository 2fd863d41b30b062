#include "interface/json/attribute.h"

#include "interface/status.h"

namespace lamina::json {

namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(Status::invalid_graph, message); }

}  // namespace

bool is_bookkeeping(std::string_view attribute) {
  return attribute == "partition_id" || attribute == "backend" || attribute == "op_depth" || attribute == "matched";
}

void PendingAttribute::set_value(Scalar value) {
  has_value_ = true;
  is_list_ = false;
  scalar_ = std::move(value);
}

void PendingAttribute::set_value(std::vector<Number> list) {
  has_value_ = is_list_ = true;
  list_ = std::move(list);
}

Attribute PendingAttribute::finish(const std::string& name) const {
  if (!has_value_) fail(join("attribute ", name, " has no value"));
  if (type_ == "bool") return to_bool(name);
  if (type_ == "s64") return take(name, &Number::as_signed, "an integer of 64 bits");
  if (type_ == "f32") return take(name, &Number::as_single, "a number that f32 can hold");
  if (type_ == "f64") return take(name, &Number::as_double, "a number that f64 can hold");
  if (type_ == "s64[]") return take_list(name, &Number::as_signed, "an array of integers of 64 bits");
  if (type_ == "f32[]") return take_list(name, &Number::as_single, "an array of numbers that f32 can hold");
  if (type_ == "string") return to_string(name);
  fail(join("attribute ", name, " has type \"", type_, "\", allowed is bool, s64, s64[], f32, f32[], f64, string"));
}

bool PendingAttribute::to_bool(const std::string& name) const {
  if (const auto* flag = std::get_if<bool>(&scalar_)) return *flag;
  const auto number = number_of(scalar_);
  const auto value = number ? number->as_signed() : std::nullopt;
  if (!value || is_list_ || *value < 0 || *value > 1) refuse(name, "0 or 1");
  return *value == 1;
}

const std::string& PendingAttribute::to_string(const std::string& name) const {
  const auto* text = std::get_if<std::string>(&scalar_);
  if (text == nullptr || is_list_) refuse(name, "a string");
  return *text;
}

template <typename T>
T PendingAttribute::take(const std::string& name, std::optional<T> (Number::*as)() const, const char* allowed) const {
  const std::optional<Number> number = number_of(scalar_);
  const std::optional<T> value = number && !is_list_ ? ((*number).*as)() : std::nullopt;
  if (!value) refuse(name, allowed);
  return *value;
}

template <typename T>
std::vector<T> PendingAttribute::take_list(const std::string& name, std::optional<T> (Number::*as)() const,
                                           const char* allowed) const {
  if (!is_list_) refuse(name, allowed);
  std::vector<T> values;
  values.reserve(list_.size());
  for (const Number& number : list_) {
    const std::optional<T> value = (number.*as)();
    if (!value) fail(join("attribute ", name, " holds ", show(number), ", allowed is ", allowed));
    values.push_back(*value);
  }
  return values;
}

void PendingAttribute::refuse(const std::string& name, const char* allowed) const {
  fail(join("attribute ", name, " is ", is_list_ ? "an array" : show(scalar_), ", allowed is ", allowed));
}

}  // namespace lamina::json
