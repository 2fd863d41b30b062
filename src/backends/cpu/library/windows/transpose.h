// Transposes between contiguous positions of one channel and pixels of lanes.
#pragma once

#include <cstdint>

namespace lamina::cpu {

// to[column * to_stride + row] = from[row * from_stride + column], for floats with any alignment.
void transpose(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns);

}  // namespace lamina::cpu
