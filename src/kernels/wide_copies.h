// Turns copies of contiguous elements of 8 or 16 bits into copies of 32-bit words. No bits are converted. The words may begin
// at any byte address.
#pragma once

#include "kernels/lower.h"

namespace lamina::kernel {

// Does not change a kernel that does more than copy, or whose runs do not consist of whole words.
void copy_in_words(LoweredKernel& lowered);

}  // namespace lamina::kernel
