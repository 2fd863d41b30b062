#include "backends/reference/window.h"

#include "interface/shape_rules.h"

namespace lamina::reference {
namespace {

// Joins the table of the previous axes with one more axis: a joined pixel is (pixel of the table) * extent + pixel of the axis.
std::vector<int64_t> with_axis(const std::vector<int64_t>& table, int64_t taps, const Window& window, size_t axis) {
  const int64_t positions = window.positions[axis], kernel = window.kernel[axis], extent = window.image[axis];
  const int64_t rows = taps == 0 ? 0 : static_cast<int64_t>(table.size()) / taps;
  std::vector<int64_t> joined(table.size() * static_cast<size_t>(positions * kernel), kOutside);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t o = 0; o < positions; ++o)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t k = 0; k < kernel; ++k) {
          const int64_t outer = table[static_cast<size_t>(row * taps + tap)];
          const int64_t inner = o * window.strides[axis] - window.pads_begin[axis] + k * window.dilations[axis];
          if (outer == kOutside || inner < 0 || inner >= extent) continue;
          joined[static_cast<size_t>(((row * positions + o) * taps + tap) * kernel + k)] = outer * extent + inner;
        }
  return joined;
}

}  // namespace

Window window_of(const OpRun& run, const Dims& image, const Dims& positions, const Dims& kernel, bool transposed) {
  const OpView view = run.view();
  const size_t rank = image.size();
  return {image,
          positions,
          kernel,
          per_axis(view, "strides", rank, 1),
          per_axis(view, "dilations", rank, 1),
          resolved_pads(view, image, kernel, transposed).begin};
}

std::vector<int64_t> pixels_of_positions(const Window& window) {
  std::vector<int64_t> table{0};
  int64_t taps = 1;
  for (size_t axis = 0; axis < window.image.size(); ++axis) {
    table = with_axis(table, taps, window, axis);
    taps *= window.kernel[axis];
  }
  return table;
}

std::vector<int64_t> positions_of_pixels(const Window& window) {
  const std::vector<int64_t> pixels = pixels_of_positions(window);
  const auto taps = static_cast<size_t>(window.tap_count());
  std::vector<int64_t> positions(static_cast<size_t>(window.image_count()) * taps, kOutside);
  for (size_t i = 0; i < pixels.size(); ++i)
    if (pixels[i] != kOutside) positions[static_cast<size_t>(pixels[i]) * taps + i % taps] = static_cast<int64_t>(i / taps);
  return positions;
}

}  // namespace lamina::reference
