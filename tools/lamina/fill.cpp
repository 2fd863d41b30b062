#include "lamina/fill.h"

#include <cmath>
#include <limits>

#include "lamina/fill_rules.h"

namespace lamina::driver {
namespace {

using Kind = FillRule::Kind;

// The finaliser of SplitMix64 (Steele et al., 2014): well mixed bits from consecutive indices.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// [0, 1) with 24 bits, so that scaling to a range is cheap and accurate; 53 bits for f64, whose data would otherwise all be
// f32 numbers.
class Random {
 public:
  Random(uint64_t seed, const LogicalTensor& tensor)
      : key_(mix(mix(seed) ^ tensor.id)), is_f64_(tensor.dtype == DataType::f64) {}
  double at(int64_t index) const {
    const uint64_t bits = mix(key_ ^ static_cast<uint64_t>(index));
    return is_f64_ ? static_cast<double>(bits >> 11) * 0x1p-53 : static_cast<double>(bits >> 40) * 0x1p-24;
  }

 private:
  uint64_t key_;
  bool is_f64_;
};

// Stores value(linear index) in every element. Two adjacent int4 elements share a byte, so these types are stored
// sequentially.
template <typename ValueAt>
void store_all(Buffer& buffer, const ValueAt& value) {
  const LogicalTensor& tensor = buffer.tensor();
  if (tensor.dtype == DataType::f32) {
    auto* data = static_cast<float*>(buffer.data());
    for_each_element_parallel(tensor, buffer.element_count(),
                              [&](int64_t index, int64_t offset) { data[offset] = static_cast<float>(value(index)); });
  } else if (bits_of(tensor.dtype) < 8) {
    for_each_element(tensor, 0, buffer.element_count(),
                     [&](int64_t index, int64_t offset) { buffer.store(offset, value(index)); });
  } else {
    for_each_element_parallel(tensor, buffer.element_count(),
                              [&](int64_t index, int64_t offset) { buffer.store(offset, value(index)); });
  }
}

void fill_uniform(Buffer& buffer, const FillRule& rule, const Random& random) {
  const bool integer = !is_floating(buffer.tensor().dtype);
  if (integer) {
    const double choices = std::floor(rule.high) - std::ceil(rule.low) + 1;
    store_all(buffer, [&](int64_t i) { return std::ceil(rule.low) + std::floor(random.at(i) * choices); });
  } else {
    const double width = rule.high - rule.low;
    store_all(buffer, [&](int64_t i) { return rule.low + width * random.at(i); });
  }
}

void fill_off_zero(Buffer& buffer, const FillRule& rule, const Random& random) {
  store_all(buffer, [&](int64_t i) {
    const double signed_unit = 2 * random.at(i) - 1;
    return std::copysign(rule.low + (rule.high - rule.low) * std::abs(signed_unit), signed_unit);
  });
}

void fill_causal_mask(Buffer& buffer) {
  const Dims& shape = *buffer.tensor().shape;
  const int64_t columns = shape.back();
  const int64_t rows = shape[shape.size() - 2];
  // With one row (a padding mask) the last eighth is masked; the first column is never masked.
  const double hidden = -std::numeric_limits<double>::infinity();
  store_all(buffer, [&](int64_t i) {
    const int64_t column = i % columns;
    const int64_t row = i / columns % rows;
    const bool keep = rows == 1 ? column <= columns - 1 - columns / 8 : column <= std::max<int64_t>(row, row + columns - rows);
    return keep || column == 0 ? 0.0 : hidden;
  });
}

// ---- values derived from another tensor

struct Statistics {
  std::vector<double> mean, variance;
};

// `key` maps an element to the statistic that it contributes to.
template <typename Key>
Statistics statistics_by(const Buffer& source, size_t groups, const Key& key) {
  Statistics result{std::vector<double>(groups, 0), std::vector<double>(groups, 0)};
  const double count = groups == 0 ? 0 : static_cast<double>(source.element_count()) / static_cast<double>(groups);
  if (count == 0) return result;
  for_each_element(source.tensor(), 0, source.element_count(),
                   [&](int64_t i, int64_t offset) { result.mean[key(i)] += source.load(offset); });
  for (double& mean : result.mean) mean /= count;
  for_each_element(source.tensor(), 0, source.element_count(), [&](int64_t i, int64_t offset) {
    const double distance = source.load(offset) - result.mean[key(i)];
    result.variance[key(i)] += distance * distance;
  });
  for (double& variance : result.variance) variance /= count;
  return result;
}

int64_t product(const Dims& shape, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t i = first; i < last; ++i) count *= shape[i];
  return count;
}

Statistics statistics_of(const Buffer& source, const FillRule& rule) {
  const Dims& shape = *source.tensor().shape;
  const auto axis = static_cast<size_t>(rule.axis);
  if (rule.per_channel) {
    const int64_t channels = shape[axis];
    const int64_t inner = product(shape, axis + 1, shape.size());
    return statistics_by(source, static_cast<size_t>(channels),
                         [=](int64_t i) { return static_cast<size_t>(i / inner % channels); });
  }
  if (rule.groups > 0) {
    const int64_t channels = shape[axis], groups = rule.groups;
    const int64_t inner = product(shape, axis + 1, shape.size()), sample = product(shape, 1, shape.size());
    return statistics_by(source, static_cast<size_t>(shape[0] * groups), [=](int64_t i) {
      return static_cast<size_t>(i / sample * groups + i / inner % channels * groups / channels);
    });
  }
  const int64_t inner = product(shape, axis, shape.size());
  return statistics_by(source, static_cast<size_t>(product(shape, 0, axis)),
                       [=](int64_t i) { return static_cast<size_t>(i / inner); });
}

void fill_statistic(Buffer& buffer, const FillRule& rule, const Buffer& source) {
  const Statistics statistics = statistics_of(source, rule);
  const double epsilon = rule.low;
  store_all(buffer, [&](int64_t index) {
    const auto i = static_cast<size_t>(index);
    if (i >= statistics.mean.size()) return 0.0;
    switch (rule.kind) {
      case Kind::mean: return statistics.mean[i];
      case Kind::rstd: return 1 / std::sqrt(statistics.variance[i] + epsilon);
      case Kind::deviation: return std::sqrt(statistics.variance[i] + epsilon);
      default: return statistics.variance[i];
    }
  });
}

// A softmax of scores from [-4, 4) along the axis; the sum of each slice is computed once and kept in `sums`.
void fill_softmax(Buffer& buffer, const FillRule& rule, const Random& random) {
  const Dims& shape = *buffer.tensor().shape;
  const auto axis = static_cast<size_t>(rule.axis);
  if (buffer.element_count() == 0) return;
  const int64_t extent = shape.empty() ? 1 : shape[axis];
  const int64_t inner = shape.empty() ? 1 : product(shape, axis + 1, shape.size());
  const auto score = [&](int64_t i) { return 8 * random.at(i) - 4; };
  const auto slice = [=](int64_t i) { return static_cast<size_t>(i / (inner * extent) * inner + i % inner); };
  std::vector<double> sums(static_cast<size_t>(buffer.element_count() / extent), 0);
  for (int64_t i = 0; i < buffer.element_count(); ++i) sums[slice(i)] += std::exp(score(i));
  const bool logarithm = rule.kind == Kind::log_softmax;
  store_all(buffer, [&](int64_t i) {
    const double log_result = score(i) - std::log(sums[slice(i)]);
    return logarithm ? log_result : std::exp(log_result);
  });
}

void fill(Buffer& buffer, const FillRule& rule, const Random& random, const Buffer* source) {
  switch (rule.kind) {
    case Kind::uniform: return fill_uniform(buffer, rule, random);
    case Kind::off_zero: return fill_off_zero(buffer, rule, random);
    case Kind::rectified:
      return store_all(buffer, [&](int64_t i) { return std::max(0.0, rule.low + (rule.high - rule.low) * random.at(i)); });
    case Kind::clamped: {
      const double margin = 0.5 * (rule.high - rule.low) + 0.5;
      return store_all(buffer, [&](int64_t i) {
        const double value = rule.low - margin + (rule.high - rule.low + 2 * margin) * random.at(i);
        return std::min(std::max(value, rule.low), rule.high);
      });
    }
    case Kind::constant: return store_all(buffer, [&](int64_t) { return rule.low; });
    case Kind::causal_mask: return fill_causal_mask(buffer);
    case Kind::mean:
    case Kind::variance:
    case Kind::rstd:
    case Kind::deviation: return fill_statistic(buffer, rule, *source);
    case Kind::softmax:
    case Kind::log_softmax: return fill_softmax(buffer, rule, random);
  }
}

}  // namespace

void fill_inputs(const Graph& graph, const std::vector<ValueIndex>& missing, uint64_t seed, Buffers& buffers) {
  for (const bool bound_ones : {false, true})  // tensors derived from another tensor are filled after it
    for (const ValueIndex input : missing) {
      const FillRule rule = fill_rule(graph, input);
      if (needs_source(rule) != bound_ones) continue;
      const uint64_t id = graph.tensor(input).id;
      const Buffer* source = bound_ones ? buffers.at(graph.tensor(rule.source).id).get() : nullptr;
      fill(*buffers.at(id), rule, Random(seed, graph.tensor(input)), source);
    }
}

}  // namespace lamina::driver
