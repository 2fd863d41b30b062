// Square blocks transposed in the registers of the machine that this program runs on.
#pragma once

#include <cstdint>

namespace lamina::cpu::host {

// Whether this machine has registers of 16 floats, a row of a block.
bool has_16x16_transpose();

// As transpose() (library/windows/transpose.h). Only where has_16x16_transpose().
void transpose_16x16_blocks(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
                            int64_t columns);

}  // namespace lamina::cpu::host
