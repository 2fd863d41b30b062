// A kernel over all rows of a box of cells.
#pragma once

#include <cstdint>

#include "backends/cpu/library/cells/axis_reads.h"
#include "backends/cpu/library/cells/cell_tensor.h"
#include "backends/cpu/library/cells/lane_kernels.h"

namespace lamina::cpu {

// Where a kernel reads and writes.
struct CellOperands {
  LaneCells input, winners, output;
  int64_t lanes = 0;
};

// What rows read, `reads`, lives longer.
class CellRows {
 public:
  explicit CellRows(const Reads& reads);

  // Cells of a row that read the same cells share work: the lines that the row reads are first made one line of input, and then
  // that is read. How many times less is read so.
  double gain_by_sharing_work() const;
  void run(LaneKernels::Kernel kernel, const Box& box, const CellOperands& operands, char* scratch) const;
  void run_sharing_work(LaneKernels::Kernel kernel, const Box& box, const CellOperands& operands, char* scratch) const;
  int64_t scratch_bytes() const { return line_bytes_; }
  int64_t scratch_bytes_sharing_work(int64_t lanes) const;

  bool are_weighted() const;
  int64_t most_terms() const;  // of a cell

 private:
  std::span<const Line> lines_of(int64_t d, int64_t h, const CellOperands& operands, char* scratch) const;

  const Reads& reads_;
  AxisReads each_cell_;  // the reads of a row that is like its lines
  int64_t line_bytes_ = 0;
};

}  // namespace lamina::cpu
