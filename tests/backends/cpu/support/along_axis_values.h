// What the tests of ops along an axis share.
#pragma once

#include <cstdint>
#include <limits>

#include "backends/cpu/support/cpu_check.h"

namespace lamina::testing {

inline constexpr DataType kTypesAlongAnAxis[] = {DataType::f32, DataType::bf16, DataType::f16, DataType::f64, DataType::s32,
                                                 DataType::s64, DataType::u16,  DataType::u32, DataType::u64};

// Few values, so that many are equal, with NaN, infinities and zeros of both signs among the floats.
inline Buffer repeated_values(const LogicalTensor& tensor) {
  Buffer buffer = buffer_for(tensor);
  const double special[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(), 0.0, -0.0};
  for (int64_t i = 0; i < tensor.span(); ++i) {
    const int64_t number = i * i * 13 % 29;
    const double value = number < 5 && is_floating(tensor.dtype) ? special[number] : static_cast<double>(number - 14) / 2;
    store_from_double(tensor.dtype, buffer.data(), i, value);
  }
  return buffer;
}

}  // namespace lamina::testing
