#include "backends/cpu/library/along_axis/axis_rows.h"

#include <algorithm>

namespace lamina::cpu {

AxisRows::AxisRows(std::vector<const LogicalTensor*> tensors, int axis) {
  const auto along = static_cast<std::ptrdiff_t>(axis);
  const auto without_axis = [along](Dims dims) {
    dims.erase(dims.begin() + along);
    return dims;
  };
  shape_ = without_axis(*tensors.front()->shape);
  for (const int64_t extent : shape_) count_ *= extent;
  for (const LogicalTensor* tensor : tensors) {
    Dims strides = without_axis(tensor->strides);
    strides.push_back(tensor->strides[static_cast<size_t>(axis)]);
    strides_.push_back(std::move(strides));
  }
}

int64_t AxisRows::begin(size_t tensor, int64_t row) const {
  int64_t offset = 0;
  for (size_t d = shape_.size(); d-- > 0; row /= shape_[d]) offset += row % shape_[d] * strides_[tensor][d];
  return offset;
}

int64_t AxisRows::rows_per_unit(int64_t elements) {
  constexpr int64_t kElementsOfUnit = 16384;  // some microseconds
  return std::max<int64_t>(kElementsOfUnit / std::max<int64_t>(elements, 1), 1);
}

}  // namespace lamina::cpu
