// What a row of a kernel reads, and what of a kernel its choices look at.
#pragma once

#include <cstdint>

#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// Whether rows have values of their own in `arg`.
bool varies_by_row(const kernel::Kernel& kernel, const kernel::Arg& arg);

// Whether `arg` has more than one value in a row: a value per row costs nothing beside the row.
bool varies_along_row(const kernel::Kernel& kernel, const kernel::Arg& arg);

// Bytes that a row reads alone, its 16-bit elements once converted, and what all rows have in common.
struct Footprint {
  int64_t read = 0, converted = 0, shared = 0;
};
Footprint footprint(const kernel::Kernel& kernel);

// Of all args once: what a call moves at least.
int64_t moved_bytes(const kernel::Kernel& kernel);

// A transcendental function, expensive to compute.
bool computes_function(const kernel::Node& node);

// Whether an element value of a phase below `phases` takes one.
bool computes_functions(const kernel::Kernel& kernel, int phases);

// Whether the elements of a row are one run: one inner dim.
bool is_one_run(const kernel::Kernel& kernel);

// Of a vector of `vector_bits`, in the kernel's widest float type.
int lane_count(const kernel::Kernel& kernel, int vector_bits);

bool has_nibbles(const kernel::Kernel& kernel);

// A four-bit arg of which two rows, or elements that do not follow each other, may lie in one byte. Loads and stores of it go
// half by half, and one thread runs a kernel that writes such an arg.
bool shares_bytes(const kernel::Arg& arg);

}  // namespace lamina::cpu
