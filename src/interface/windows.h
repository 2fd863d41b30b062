// Pools, resampling and their gradients, axis by axis: which positions of the input each position of the output reads. Axes
// multiply: an output reads every combination of its axes' taps.
#pragma once

#include <cstdint>
#include <vector>

#include "interface/op_schema.h"

namespace lamina {

// Along one spatial axis, each of `outputs` positions has `count` taps. Tap k of output o reads position
// o * stride + k * step + first of the input, or nothing if that is outside of it. If there is a table of pixels, it says which
// position is read instead; -1: none. Tables have an entry per tap and output, taps first.
struct AxisTaps {
  int64_t inputs = 1, outputs = 1, count = 1;
  int64_t stride = 1, step = 0, first = 0;
  std::vector<int64_t> pixels = {};
  std::vector<double> weights = {};  // empty: all are 1
  // Of a gradient: the number that the window which is read has for this position. Without a table it is that of the tap, or
  // counts down from the last tap to the first.
  std::vector<int64_t> numbers = {};
  bool counts_down = false;
  std::vector<float> inside = {};  // with attribute exclude_pad, per output: how many taps read a position
  float divisor = 1;               // of the sums otherwise

  int64_t pixel(int64_t output, int64_t tap) const;  // -1: none
  double weight(int64_t output, int64_t tap) const { return weights.empty() ? 1 : weights[entry(output, tap)]; }
  int64_t number(int64_t output, int64_t tap) const;
  float divisor_of(int64_t output) const { return inside.empty() ? divisor : inside[static_cast<size_t>(output)]; }

  bool reads_all() const;                                                  // no tap is outside
  bool may_be_before(int64_t tap) const, may_be_after(int64_t tap) const;  // some output reads outside on that side

 private:
  size_t entry(int64_t output, int64_t tap) const { return static_cast<size_t>(tap * outputs + output); }
};

struct Windows {
  std::vector<AxisTaps> axes;  // one per spatial axis

  int64_t taps() const;
  // Whether the taps are a loop nest of their own. If not, a kernel reads them one after the other.
  bool are_loops() const;
};

// The taps of the op: of a gradient, the positions of diff_dst that each position of diff_src reads. All shapes are known.
Windows windows_of(const OpView& view);

bool is_window_gradient(const OpView& view);

// The windows of MaxPool's gradient: the positions of src that each position of diff_dst had read. Throws Error if they have
// more taps than floats count.
Windows forward_windows_of(const OpView& view);

}  // namespace lamina
