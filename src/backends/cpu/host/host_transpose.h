// Transposes square blocks in the registers of the machine on which this program runs.
#pragma once

#include <cstdint>

namespace lamina::cpu::host {

// Whether this machine has registers for a row of a square, 16 floats.
bool has_16x16_transpose();

// The same as transpose() (dispatch/windows/transpose.h). Requires has_16x16_transpose().
void transpose_16x16_blocks(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
                            int64_t columns);

}  // namespace lamina::cpu::host
