#include "random/edge_values.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "interface/element.h"
#include "interface/op_schema.h"
#include "interface/small_float.h"
#include "interface/type_rules.h"
#include "lamina/fill_rules.h"
#include "random/rng.h"

namespace lamina::testing {

namespace {

// The significant bits of each small float, in descending order.
std::vector<int> significant_bits_of_small_floats() {
  std::vector<int> bits;
  for (const DataType type : all_types())
    if (kind_of(type) == TypeKind::small_float) bits.push_back(small_float(type).mantissa_bits + 1);
  std::sort(bits.begin(), bits.end(), std::greater<>());
  return bits;
}

// Returns the middle between two neighbours near `value` in a type of `bits` significant bits, or a value slightly beside it.
double near_middle(double value, int bits, double nudge) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  const double unit = std::ldexp(1.0, -bits);
  const double middle = (std::floor(fraction / unit) + 0.5) * unit;
  return std::ldexp(middle + nudge, exponent);
}

double edge(double value, DataType dtype, Rng& rng) {
  static const std::vector<int> significant_bits = significant_bits_of_small_floats();
  static const std::vector<double> nudges = {0, 0x1p-40, -0x1p-40, 0x1p-26, -0x1p-26, 0x1p-50};
  return near_middle(value, rng.pick(significant_bits), dtype == DataType::f64 ? rng.pick(nudges) : 0);
}

// Returns an integer at or near the middle between two neighbours of a type with few significant bits, of any size `dtype`
// holds.
int64_t large_integer(DataType dtype, Rng& rng) {
  static const std::vector<int> significant_bits = {53, 24, 11, 8, 4, 3};
  const auto exponent = static_cast<int>(rng.from(8, bits_of(dtype) - 2));
  const int half_step = std::max(0, exponent - rng.pick(significant_bits));
  const int64_t magnitude = (int64_t{1} << exponent) + rng.pick({1, 3}) * (int64_t{1} << half_step) + rng.from(-1, 1);
  return rng.one_in(2) ? magnitude : -magnitude;
}

void store_integer(driver::Buffer& buffer, int64_t offset, int64_t value) {
  visit_integer_type(buffer.tensor().dtype,
                     [&](auto of_type) { store_element(buffer.data(), offset, static_cast<decltype(of_type)>(value)); });
}

// Whether a cast reads the input; with `of_all`, whether all its consumers are casts.
bool is_converted(const Graph& graph, ValueIndex input, bool of_all) {
  const auto& consumers = graph.value(input).consumers;
  const auto converts = [&](const auto& consumer) { return schema_of(graph.op(consumer.op).kind).traits.converts; };
  return of_all ? std::all_of(consumers.begin(), consumers.end(), converts)
                : std::any_of(consumers.begin(), consumers.end(), converts);
}

}  // namespace

void add_edge_values(const Graph& graph, ValueIndex input, uint64_t seed, driver::Buffer& buffer) {
  const DataType dtype = buffer.tensor().dtype;
  const driver::FillRule rule = driver::fill_rule(graph, input);
  const bool is_real = (dtype == DataType::f32 || dtype == DataType::f64) && is_converted(graph, input, false);
  const bool is_whole = is_integer(dtype) && bits_of(dtype) >= 16 && is_converted(graph, input, true);
  if (rule.insistence >= 2 || rule.kind != driver::FillRule::Kind::uniform || !(is_real || is_whole)) return;
  Rng rng(seed ^ buffer.tensor().id);
  driver::for_each_element(buffer.tensor(), 0, buffer.element_count(), [&](int64_t, int64_t offset) {
    if (!rng.one_in(8)) return;
    if (is_real)
      buffer.store(offset, edge(buffer.load(offset), dtype, rng));
    else
      store_integer(buffer, offset, large_integer(dtype, rng));
  });
}

}  // namespace lamina::testing
