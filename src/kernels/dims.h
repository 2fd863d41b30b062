// Rewrites of a kernel's loop nest that preserve its values.
#pragma once

#include "kernels/kernel_ir.h"

namespace lamina::kernel {

// Drops dims of extent 1, and in kernels without reductions also dims along which no output varies. Orders the dims of each
// group (outer, inner) by their strides in memory, and merges neighbours that every arg traverses as one dim. A kernel
// without reductions ends with one inner dim, the innermost. Every kernel keeps at least one dim.
void simplify_dims(Kernel& kernel);

// Replaces column sums over a single row by stores, which need no partial sums and no second pass. Adds 0, because no sum is
// -0.
void store_sums_of_one_row(Kernel& kernel);

}  // namespace lamina::kernel
