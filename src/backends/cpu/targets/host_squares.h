// Square blocks turned in the registers of the machine that this program runs on.
#pragma once

#include <cstdint>

namespace lamina::cpu::host {

// Whether this machine has registers of a square's rows, 16 floats.
bool has_large_squares();

// As transpose() (library/cells/transpose.h). Only where has_large_squares().
void transpose_by_large_squares(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
                                int64_t columns);

}  // namespace lamina::cpu::host
