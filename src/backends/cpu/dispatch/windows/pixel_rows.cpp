#include "backends/cpu/dispatch/windows/pixel_rows.h"

#include <algorithm>
#include <span>

#include "backends/cpu/dispatch/primitive.h"

namespace lamina::cpu {

PixelRows::PixelRows(const Taps& taps)
    : taps_(taps),
      pixels_(taps[2].inputs_of({0, taps[2].size()}).end),
      line_bytes_(aligned(taps[0].max_taps() * taps[1].max_taps() * static_cast<int64_t>(sizeof(Line)))) {}

void PixelRows::prepare_sharing_work() { each_pixel_ = TapLists::each(pixels_); }

double PixelRows::gain_by_sharing_work() const {
  const auto lines = static_cast<double>(taps_[0].tap_count() * taps_[1].tap_count());
  const auto rows = static_cast<double>(taps_[0].size() * taps_[1].size()), pixels = static_cast<double>(pixels_);
  const auto taps = static_cast<double>(taps_[2].tap_count());
  return lines * taps / (lines * pixels + rows * (pixels + taps));
}

int64_t PixelRows::scratch_bytes_sharing_work(int64_t lanes) const {
  return line_bytes_ + aligned(pixels_ * lanes * int64_t{sizeof(float)});
}

bool PixelRows::are_weighted() const {
  return std::any_of(taps_.begin(), taps_.end(), [](const TapLists& axis) { return axis.is_weighted(); });
}

int64_t PixelRows::most_terms() const { return taps_[0].max_taps() * taps_[1].max_taps() * taps_[2].max_taps(); }

std::span<const Line> PixelRows::lines_of(int64_t d, int64_t h, const WindowOperands& operands, char* scratch) const {
  Line* const lines = reinterpret_cast<Line*>(scratch);
  size_t count = 0;
  for (const Tap* i = taps_[0].begin(d); i != taps_[0].end(d); ++i)
    for (const Tap* j = taps_[1].begin(h); j != taps_[1].end(h); ++j)
      lines[count++] = {operands.input.line(i->pixel, j->pixel), i->weight * j->weight, i->number + j->number,
                        operands.argmax.line(i->pixel, j->pixel)};
  return {lines, count};
}

void PixelRows::run(LaneKernels::Kernel kernel, const Box& box, const WindowOperands& operands, char* scratch) const {
  PixelRow row{.taps = &taps_[2],
               .pixels = box[2],
               .input = operands.input.data,
               .input_stride = operands.input.strides[2],
               .argmax = reinterpret_cast<const int32_t*>(operands.argmax.data),
               .argmax_stride = operands.argmax.strides[2],
               .output_stride = operands.output.strides[2],
               .lanes = operands.lanes};
  for (int64_t d = box[0].begin; d < box[0].end; ++d)
    for (int64_t h = box[1].begin; h < box[1].end; ++h) {
      row.lines = lines_of(d, h, operands, scratch);
      row.divisor = taps_[0].divisor(d) * taps_[1].divisor(h);
      row.output = operands.output.pixel(d, h, box[2].begin);
      kernel(row);
    }
}

void PixelRows::run_sharing_work(LaneKernels::Kernel kernel, const Box& box, const WindowOperands& operands,
                                 char* scratch) const {
  char* const between = scratch + line_bytes_;
  PixelRow first{.taps = &each_pixel_,
                 .pixels = taps_[2].inputs_of(box[2]),
                 .input = operands.input.data,
                 .input_stride = operands.input.strides[2],
                 .output = between,
                 .output_stride = operands.lanes,
                 .lanes = operands.lanes};
  const Line shared{.at = -first.pixels.begin * operands.lanes};
  PixelRow second{.lines = {&shared, 1},
                  .taps = &taps_[2],
                  .pixels = box[2],
                  .input = between,
                  .input_stride = operands.lanes,
                  .output_stride = operands.output.strides[2],
                  .lanes = operands.lanes};
  for (int64_t d = box[0].begin; d < box[0].end; ++d)
    for (int64_t h = box[1].begin; h < box[1].end; ++h) {
      first.lines = lines_of(d, h, operands, scratch);
      kernel(first);
      second.divisor = taps_[0].divisor(d) * taps_[1].divisor(h);
      second.output = operands.output.pixel(d, h, box[2].begin);
      kernel(second);
    }
}

}  // namespace lamina::cpu
