#include "backends/cpu/dispatch/axis_rows.h"

#include <algorithm>
#include <utility>

namespace lamina::cpu {

AxisRows::AxisRows(AxisRowsProgram program) : program_(std::move(program)) {
  for (const int64_t extent : program_.shape) count_ *= extent;
}

int64_t AxisRows::begin(size_t tensor, int64_t row) const {
  int64_t offset = 0;
  for (size_t d = program_.shape.size(); d-- > 0; row /= program_.shape[d])
    offset += row % program_.shape[d] * program_.strides[tensor][d];
  return offset;
}

AxisRows::Walk AxisRows::walk(size_t tensor, int64_t row, int64_t extent, bool reverse) const {
  const int64_t first = begin(tensor, row), by = step(tensor);
  return reverse ? Walk{first + (extent - 1) * by, -by} : Walk{first, by};
}

int64_t AxisRows::rows_per_unit(int64_t elements) {
  constexpr int64_t kElementsOfUnit = 16384;  // some microseconds
  return std::max<int64_t>(kElementsOfUnit / std::max<int64_t>(elements, 1), 1);
}

}  // namespace lamina::cpu
