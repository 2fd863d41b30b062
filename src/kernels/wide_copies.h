// Copies of elements of 8 or 16 bits that follow each other become copies of words of 32: no conversion, every bit as it was.
// The words may begin at any byte.
#pragma once

#include "kernels/lower.h"

namespace lamina::kernel {

// Leaves a kernel that does more than copy, or whose runs are not made of whole words, as it is.
void copy_in_words(LoweredKernel& lowered);

}  // namespace lamina::kernel
