#include "backends/cpu/library/cells/cell_rows.h"

#include <algorithm>
#include <array>
#include <span>

namespace lamina::cpu {

namespace {

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

CellRows::CellRows(const Reads& reads)
    : reads_(reads), line_bytes_(aligned(reads[0].most_reads() * reads[1].most_reads() * static_cast<int64_t>(sizeof(Line)))) {
  for (int64_t cell = 0, end = reads[2].inputs_of({0, reads[2].size()}).end; cell < end; ++cell)
    each_cell_.add(std::array{Read{cell}}, 1);
}

double CellRows::gain_by_sharing_work() const {
  const auto lines = static_cast<double>(reads_[0].read_count() * reads_[1].read_count());
  const auto rows = static_cast<double>(reads_[0].size() * reads_[1].size()), cells = static_cast<double>(each_cell_.size());
  const auto reads = static_cast<double>(reads_[2].read_count());
  return lines * reads / (lines * cells + rows * (cells + reads));
}

int64_t CellRows::scratch_bytes_sharing_work(int64_t lanes) const {
  return line_bytes_ + aligned(each_cell_.size() * lanes * int64_t{sizeof(float)});
}

bool CellRows::are_weighted() const {
  return std::any_of(reads_.begin(), reads_.end(), [](const AxisReads& axis) { return axis.is_weighted(); });
}

int64_t CellRows::most_terms() const { return reads_[0].most_reads() * reads_[1].most_reads() * reads_[2].most_reads(); }

std::span<const Line> CellRows::lines_of(int64_t d, int64_t h, const CellOperands& operands, char* scratch) const {
  Line* const lines = reinterpret_cast<Line*>(scratch);
  size_t count = 0;
  for (const Read* i = reads_[0].begin(d); i != reads_[0].end(d); ++i)
    for (const Read* j = reads_[1].begin(h); j != reads_[1].end(h); ++j)
      lines[count++] = {operands.input.line(i->cell, j->cell), i->weight * j->weight, i->tap + j->tap,
                        operands.winners.line(i->cell, j->cell)};
  return {lines, count};
}

void CellRows::run(LaneKernels::Kernel kernel, const Box& box, const CellOperands& operands, char* scratch) const {
  CellRow row{.reads = &reads_[2],
              .cells = box[2],
              .input = operands.input.data,
              .input_stride = operands.input.strides[2],
              .winners = reinterpret_cast<const int32_t*>(operands.winners.data),
              .winners_stride = operands.winners.strides[2],
              .output_stride = operands.output.strides[2],
              .lanes = operands.lanes};
  for (int64_t d = box[0].begin; d < box[0].end; ++d)
    for (int64_t h = box[1].begin; h < box[1].end; ++h) {
      row.lines = lines_of(d, h, operands, scratch);
      row.divisor = reads_[0].divisor(d) * reads_[1].divisor(h);
      row.output = operands.output.cell(d, h, box[2].begin);
      kernel(row);
    }
}

void CellRows::run_sharing_work(LaneKernels::Kernel kernel, const Box& box, const CellOperands& operands, char* scratch) const {
  char* const between = scratch + line_bytes_;
  CellRow first{.reads = &each_cell_,
                .cells = reads_[2].inputs_of(box[2]),
                .input = operands.input.data,
                .input_stride = operands.input.strides[2],
                .output = between,
                .output_stride = operands.lanes,
                .lanes = operands.lanes};
  const Line shared{.at = -first.cells.begin * operands.lanes};
  CellRow second{.lines = {&shared, 1},
                 .reads = &reads_[2],
                 .cells = box[2],
                 .input = between,
                 .input_stride = operands.lanes,
                 .output_stride = operands.output.strides[2],
                 .lanes = operands.lanes};
  for (int64_t d = box[0].begin; d < box[0].end; ++d)
    for (int64_t h = box[1].begin; h < box[1].end; ++h) {
      first.lines = lines_of(d, h, operands, scratch);
      kernel(first);
      second.divisor = reads_[0].divisor(d) * reads_[1].divisor(h);
      second.output = operands.output.cell(d, h, box[2].begin);
      kernel(second);
    }
}

}  // namespace lamina::cpu
