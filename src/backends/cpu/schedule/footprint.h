// The bytes that a row of a kernel reads, and properties of kernels on which choices depend.
#pragma once

#include <cstdint>

#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// Whether rows have separate values in `arg`.
bool varies_by_row(const kernel::Kernel& kernel, const kernel::Arg& arg);

// Whether `arg` has more than one value per row. One value per row is negligible.
bool varies_along_row(const kernel::Kernel& kernel, const kernel::Arg& arg);

// Bytes that only one row reads, the same bytes with 16-bit elements converted, and bytes that all rows share.
struct Footprint {
  int64_t read = 0, converted = 0, shared = 0;
};
Footprint footprint(const kernel::Kernel& kernel);

// Whether an element value of a phase below `phases` is a transcendental function.
bool computes_functions(const kernel::Kernel& kernel, int phases);

// Whether the elements of a row are one run: there is one inner dim.
bool is_one_run(const kernel::Kernel& kernel);

// The lanes of a vector of `vector_bits`, for the kernel's widest float type.
int lane_count(const kernel::Kernel& kernel, int vector_bits);

bool has_nibbles(const kernel::Kernel& kernel);

// Whether two rows of a four-bit arg, or elements that are not contiguous, may share a byte. Loads and stores of it then
// access half bytes, and a single thread runs a kernel that writes such an arg.
bool shares_bytes(const kernel::Arg& arg);

}  // namespace lamina::cpu
