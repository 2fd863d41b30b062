// Which cells of the input each cell of the output is made of, along one spatial axis: pools, resampling, and their gradients,
// which read the other way round. Axes multiply: a cell of the output reads every combination of what its axes read.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lamina::cpu {

struct Read {
  int64_t cell = 0;  // of the input
  float weight = 1;
  int32_t tap = 0;  // which of its window's cells the window reads there
};

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

class AxisReads {
 public:
  // Adds the next cell of the output, whose sum is divided by `divisor`.
  void add(std::span<const Read> reads, float divisor);

  int64_t size() const { return static_cast<int64_t>(divisors_.size()); }
  const Read* begin(int64_t cell) const { return reads_.data() + begins_[static_cast<size_t>(cell)]; }
  const Read* end(int64_t cell) const { return reads_.data() + begins_[static_cast<size_t>(cell) + 1]; }
  float divisor(int64_t cell) const { return divisors_[static_cast<size_t>(cell)]; }

  bool is_weighted() const;
  int64_t read_count() const { return static_cast<int64_t>(reads_.size()); }
  int64_t most_reads() const;  // of a cell

  // From the first to the last cell of the input that any of these reads; empty where none reads any.
  Range inputs_of(Range outputs) const;

  // The reads of the gradient: of each of `inputs` cells, the cells of the output that read it.
  AxisReads reversed(int64_t inputs) const;

 private:
  std::vector<size_t> begins_{0};  // of each cell's reads, and the end of the last
  std::vector<Read> reads_;
  std::vector<float> divisors_;
};

using Reads = std::array<AxisReads, 3>;  // of the three axes
Reads reversed(const Reads& reads, const std::array<int64_t, 3>& inputs);

// A window at position o has its tap k on cell o * stride - pad_begin + k * dilation of the image. Taps outside are not read.
struct WindowAxis {
  int64_t image, positions, kernel, stride, dilation, pad_begin;
};
enum class Divisor { one, window, cells_inside };
// Taps are numbered in steps of `tap_step`, so that the numbers of several axes add up to one.
AxisReads window_reads(const WindowAxis& axis, Divisor divisor, int64_t tap_step = 1);

// Cell o of `outputs` lies at x of the input, held inside it:
//   half_pixel     x = (o + 1/2) * inputs / outputs - 1/2
//   align_corners  x = o * (inputs - 1) / (outputs - 1), 0 where outputs is 1
// and is the nearest cell, of two the later one, or a mean of the two cells around x by their distance.
enum class Coordinates { half_pixel, align_corners };
AxisReads nearest_reads(int64_t inputs, int64_t outputs, Coordinates coordinates);
AxisReads linear_reads(int64_t inputs, int64_t outputs, Coordinates coordinates);

}  // namespace lamina::cpu
