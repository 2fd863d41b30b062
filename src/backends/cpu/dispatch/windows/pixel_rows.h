// A kernel over all rows of a box of pixels.
#pragma once

#include <cstdint>

#include "backends/cpu/dispatch/windows/image_tensor.h"
#include "backends/cpu/dispatch/windows/lane_kernels.h"
#include "backends/cpu/program/tap_lists.h"

namespace lamina::cpu {

// The memory that a kernel reads and writes.
struct WindowOperands {
  LanePixels input, argmax, output;
  int64_t lanes = 0;
};

// The taps of rows. `taps` must outlive it.
class PixelRows {
 public:
  explicit PixelRows(const Taps& taps);

  // Pixels of a row that read the same pixels can share work: the lines that the row reads are first combined into one line
  // of input, and then that line is read. Returns the factor by which this reduces the number of reads.
  double gain_by_sharing_work() const;
  void prepare_sharing_work();  // before run_sharing_work
  void run(LaneKernels::Kernel kernel, const Box& box, const WindowOperands& operands, char* scratch) const;
  void run_sharing_work(LaneKernels::Kernel kernel, const Box& box, const WindowOperands& operands, char* scratch) const;
  int64_t scratch_bytes() const { return line_bytes_; }
  int64_t scratch_bytes_sharing_work(int64_t lanes) const;

  bool are_weighted() const;
  int64_t most_terms() const;  // of one pixel

 private:
  std::span<const Line> lines_of(int64_t d, int64_t h, const WindowOperands& operands, char* scratch) const;

  const Taps& taps_;
  int64_t pixels_;       // of a line of input, up to the last one that is read
  TapLists each_pixel_;  // if work is shared: the taps of a row with the same pixels as its lines
  int64_t line_bytes_ = 0;
};

}  // namespace lamina::cpu
