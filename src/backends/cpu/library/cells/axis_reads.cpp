#include "backends/cpu/library/cells/axis_reads.h"

#include <algorithm>

namespace lamina::cpu {

void AxisReads::add(std::span<const Read> reads, float divisor) {
  reads_.insert(reads_.end(), reads.begin(), reads.end());
  begins_.push_back(reads_.size());
  divisors_.push_back(divisor);
}

bool AxisReads::is_weighted() const {
  return std::any_of(reads_.begin(), reads_.end(), [](const Read& read) { return read.weight != 1; });
}

int64_t AxisReads::most_reads() const {
  int64_t most = 0;
  for (int64_t cell = 0; cell < size(); ++cell) most = std::max(most, end(cell) - begin(cell));
  return most;
}

Range AxisReads::inputs_of(Range outputs) const {
  Range range;
  if (outputs.size() == 0) return range;
  for (const Read* read = begin(outputs.begin); read != end(outputs.end - 1); ++read) {
    if (range.size() == 0) range = {read->cell, read->cell + 1};
    range = {std::min(range.begin, read->cell), std::max(range.end, read->cell + 1)};
  }
  return range;
}

// All sums are divided by the largest divisor, which most cells have: what has another one is weighed.
AxisReads AxisReads::reversed(int64_t inputs) const {
  const float common = std::max(1.0F, *std::max_element(divisors_.begin(), divisors_.end()));
  std::vector<std::vector<Read>> readers(static_cast<size_t>(inputs));
  for (int64_t cell = 0; cell < size(); ++cell) {
    for (const Read* read = begin(cell); read != end(cell); ++read)
      readers[static_cast<size_t>(read->cell)].push_back({cell, read->weight * (common / divisor(cell)), read->tap});
  }
  AxisReads result;
  for (const std::vector<Read>& reads : readers) result.add(reads, common);
  return result;
}

Reads reversed(const Reads& reads, const std::array<int64_t, 3>& inputs) {
  return {reads[0].reversed(inputs[0]), reads[1].reversed(inputs[1]), reads[2].reversed(inputs[2])};
}

AxisReads window_reads(const WindowAxis& axis, Divisor divisor, int64_t tap_step) {
  AxisReads result;
  std::vector<Read> reads;
  for (int64_t position = 0; position < axis.positions; ++position) {
    const int64_t start = position * axis.stride - axis.pad_begin;
    const int64_t first = start >= 0 ? 0 : (-start + axis.dilation - 1) / axis.dilation;
    const int64_t inside = start >= axis.image ? 0 : (axis.image - 1 - start) / axis.dilation + 1;
    reads.clear();
    for (int64_t tap = first; tap < std::min(inside, axis.kernel); ++tap)
      reads.push_back({start + tap * axis.dilation, 1, static_cast<int32_t>(tap * tap_step)});
    const int64_t cells = divisor == Divisor::window ? axis.kernel : static_cast<int64_t>(reads.size());
    result.add(reads, divisor == Divisor::one ? 1 : static_cast<float>(cells));
  }
  return result;
}

// In integers: x = (2o + 1) inputs / (2 outputs) - 1/2, so the nearest cell is x + 1/2 rounded down.
AxisReads nearest_reads(int64_t inputs, int64_t outputs, Coordinates coordinates) {
  AxisReads result;
  const bool aligned = coordinates == Coordinates::align_corners;
  const int64_t divisor = aligned ? std::max<int64_t>(2 * (outputs - 1), 1) : 2 * outputs;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t cell = aligned ? (2 * o * (inputs - 1) + (outputs - 1)) / divisor : (2 * o + 1) * inputs / divisor;
    result.add(std::array{Read{std::min(cell, inputs - 1)}}, 1);
  }
  return result;
}

// A cell without weight is not read: an infinity there must not spoil the sum.
AxisReads linear_reads(int64_t inputs, int64_t outputs, Coordinates coordinates) {
  AxisReads result;
  const bool aligned = coordinates == Coordinates::align_corners;
  const auto in = static_cast<double>(inputs), out = static_cast<double>(outputs);
  for (int64_t o = 0; o < outputs; ++o) {
    const auto at = static_cast<double>(o);
    const double exact = !aligned ? (at + 0.5) * in / out - 0.5 : outputs == 1 ? 0 : at * (in - 1) / (out - 1);
    const double x = std::clamp(exact, 0.0, in - 1);
    const auto below = static_cast<int64_t>(x);
    const double distance = x - static_cast<double>(below);
    const std::array around{Read{below, static_cast<float>(1 - distance)}, Read{below + 1, static_cast<float>(distance)}};
    result.add(std::span(around).first(around[1].weight > 0 ? 2 : 1), 1);
  }
  return result;
}

}  // namespace lamina::cpu
