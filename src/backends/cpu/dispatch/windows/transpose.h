// Transposes between contiguous positions of one channel and pixels of lanes.
#pragma once

#include <cstdint>

namespace lamina::cpu {

// to[column * to_stride + row] = from[row * from_stride + column], for floats with any alignment.
void transpose(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns);

// The same for elements of 8, 16 or 32 bits.
void transpose(int bits, const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns);

// The least rows and columns of elements with this many bits that are transposed in registers, not one by one.
constexpr int64_t square_side(int bits) { return 128 / bits; }

}  // namespace lamina::cpu
