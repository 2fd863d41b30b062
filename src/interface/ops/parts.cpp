#include "interface/ops/parts.h"

#include <algorithm>
#include <cmath>

namespace lamina::parts {
namespace {

std::string entries_from(const Attribute& value, int64_t least, const std::string& allowed) {
  if (const auto* single = std::get_if<int64_t>(&value)) return *single >= least ? "" : allowed;
  const auto& entries = std::get<std::vector<int64_t>>(value);
  const bool legal = std::all_of(entries.begin(), entries.end(), [least](int64_t entry) { return entry >= least; });
  return legal ? "" : "entries of " + allowed;
}

}  // namespace

std::string positive_finite(const Attribute& value) {
  const double number = *number_of(value);
  return std::isfinite(number) && number > 0 ? "" : "a positive finite number";
}

std::string finite(const Attribute& value) { return std::isfinite(*number_of(value)) ? "" : "a finite number"; }

std::string not_nan(const Attribute& value) { return std::isnan(*number_of(value)) ? "a number, not NaN" : ""; }

std::string at_least_one(const Attribute& value) { return entries_from(value, 1, "1 or more"); }

std::string not_negative(const Attribute& value) { return entries_from(value, 0, "0 or more"); }

AttributeSpec epsilon(bool required) {
  return {.name = "epsilon",
          .type = AttributeType::f32,
          .default_value = required ? std::nullopt : std::optional<Attribute>(1e-5F),
          .required = required,
          .check = positive_finite,
          .meaning = "added to the variance before the square root",
          .example = 1e-5F};
}

AttributeSpec begin_norm_axis() {
  return {.name = "begin_norm_axis",
          .type = AttributeType::s64,
          .default_value = int64_t{-1},
          .meaning = "first normalised axis, -r..r-1 for rank r; negative counts from the end"};
}

AttributeSpec flag(std::string name, bool default_value, std::string meaning) {
  return {
      .name = std::move(name), .type = AttributeType::boolean, .default_value = default_value, .meaning = std::move(meaning)};
}

AttributeSpec required_flag(std::string name, std::string meaning) {
  return {.name = std::move(name),
          .type = AttributeType::boolean,
          .required = true,
          .meaning = std::move(meaning),
          .example = false};
}

AttributeSpec choice(std::string name, std::string default_value, std::vector<std::string> allowed, std::string meaning) {
  return {.name = std::move(name),
          .type = AttributeType::string,
          .default_value = std::move(default_value),
          .allowed = std::move(allowed),
          .meaning = std::move(meaning)};
}

AttributeSpec axis(std::optional<int64_t> default_value) {
  return {.name = "axis",
          .type = AttributeType::s64,
          .default_value = default_value ? std::optional<Attribute>(*default_value) : std::nullopt,
          .required = !default_value,
          .meaning = "-r..r-1 for rank r; negative counts from the end"};
}

AttributeSpec data_format() {
  return choice("data_format", "NXC", {"NCX", "NXC"}, "position of the channels: NCX second axis, NXC last axis");
}

AttributeSpec auto_broadcast() {
  return choice("auto_broadcast", "numpy", {"none", "numpy"}, "numpy: both sides broadcast; none: shapes are equal");
}

AttributeSpec use_dst() { return flag("use_dst", true, "true: input 0 is the forward output; false: the forward input"); }

AttributeSpec required_number(std::string name, std::string meaning) {
  return {.name = std::move(name),
          .type = AttributeType::f32,
          .required = true,
          .check = finite,
          .meaning = std::move(meaning),
          .example = 0.5F};
}

AttributeSpec required_list(std::string name, std::string (*check)(const Attribute&), std::string meaning) {
  AttributeSpec spec{.name = std::move(name), .type = AttributeType::s64_list, .required = true, .meaning = std::move(meaning)};
  if (check != nullptr) spec.check = check;
  return spec;
}

AttributeSpec default_list(std::string name, int64_t entry, std::string (*check)(const Attribute&), std::string meaning) {
  AttributeSpec spec = required_list(std::move(name), check, std::move(meaning));
  spec.required = false;
  spec.default_value = std::vector<int64_t>(static_cast<size_t>(kMaxRank), entry);
  return spec;
}

Condition flag_is(std::string name, bool value) {
  std::string text = name + (value ? " is true" : " is false"), opposite = name + (value ? " is false" : " is true");
  return {std::move(text),
          [name = std::move(name), value](const Attributes& attributes) {
            const auto found = attributes.find(name);
            const bool* given = found == attributes.end() ? nullptr : std::get_if<bool>(&found->second);
            return given != nullptr && *given == value;
          },
          std::move(opposite)};
}

Condition both(Condition a, Condition b) {
  std::string text = a.text + " and " + b.text;
  return {std::move(text), [a = std::move(a), b = std::move(b)](const Attributes& attributes) {
            return a.holds(attributes) && b.holds(attributes);
          }};
}

Condition text_is(std::string name, std::string value) {
  std::string text = name + " is " + value;
  return {std::move(text), [name = std::move(name), value = std::move(value)](const Attributes& attributes) {
            const auto found = attributes.find(name);
            const auto* given = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
            return given != nullptr && *given == value;
          }};
}

PortSpec port(std::string name, std::string type, std::string meaning) {
  return {.name = std::move(name), .type = std::move(type), .meaning = std::move(meaning)};
}

PortSpec optional_port(std::string name, std::string type, std::string meaning) {
  PortSpec spec = port(std::move(name), std::move(type), std::move(meaning));
  spec.presence = Presence::optional;
  return spec;
}

PortSpec port_when(std::string name, std::string type, Condition condition, std::string meaning) {
  PortSpec spec = port(std::move(name), std::move(type), std::move(meaning));
  spec.exists_when = std::move(condition);
  return spec;
}

PortSpec optional_when(std::string name, std::string type, Condition condition, std::string meaning) {
  PortSpec spec = port_when(std::move(name), std::move(type), std::move(condition), std::move(meaning));
  spec.presence = Presence::optional;
  return spec;
}

PortSpec as(PortRole role, PortSpec port) {
  port.role = role;
  return port;
}

Domain suits(double low, double high) { return {.low = low, .high = high}; }

Domain needs(double low, double high) { return {.low = low, .high = high, .required = true}; }

Domain needs(Domain::Form form, double low, double high) { return {.form = form, .low = low, .high = high, .required = true}; }

DomainRule always(Domain domain) {
  return {describe(domain), [domain](const OpView&, const LogicalTensor&) { return domain; }};
}

DomainRule forward(std::string text, std::function<Domain(const OpView&)> of_dst, std::function<Domain(const OpView&)> of_src) {
  return {std::move(text), [of_dst = std::move(of_dst), of_src = std::move(of_src)](const OpView& view, const LogicalTensor&) {
            return view.attribute<bool>("use_dst") ? of_dst(view) : of_src(view);
          }};
}

bool is_scalar(const LogicalTensor& tensor) { return tensor.has_full_shape() && tensor.element_count() == 1; }

PortSpec within(DomainRule rule, PortSpec port) {
  port.domain = std::move(rule);
  return port;
}

PortSpec within(Domain domain, PortSpec port) { return within(always(domain), std::move(port)); }

}  // namespace lamina::parts
