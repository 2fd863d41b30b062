// Indices for Gather and ScatterAdd.
#pragma once

#include <vector>

#include "backends/cpu/support/cpu_check.h"
#include "interface/element.h"

namespace lamina::testing {

inline Buffer indices_of(const LogicalTensor& tensor, const std::vector<int64_t>& values) {
  Buffer buffer = buffer_for(tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (tensor.dtype == DataType::s64)
      store_element(buffer.data(), place, values[i]);
    else
      store_element(buffer.data(), place, static_cast<int32_t>(values[i]));
  }
  return buffer;
}

inline int64_t number_of(const Dims& shape) { return checked_product(shape, "indices"); }

// Indices from both ends, many of them repeated.
inline std::vector<int64_t> some_indices(int64_t count, int64_t extent) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i * i * 7 % (2 * extent) - extent);
  return values;
}

}  // namespace lamina::testing
