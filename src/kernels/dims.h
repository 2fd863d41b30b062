// Rewrites of a kernel's loop nest that leave its values alone.
#pragma once

#include "kernels/kernel_ir.h"

namespace lamina::kernel {

// Drops dims of extent 1, and those that a kernel without reductions makes nothing along; orders the dims of each group (outer,
// inner) as they lie in memory, merges neighbours that every arg walks as one. A kernel without reductions ends with one inner
// dim, the innermost; every kernel has at least one.
void simplify_dims(Kernel& kernel);

// Column sums over a single row are stores: no partial sums, no second pass over them. 0 is added to them, since no sum is -0.
void store_sums_of_one_row(Kernel& kernel);

}  // namespace lamina::kernel
