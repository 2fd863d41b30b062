// Transposes a square block in registers.
#pragma once

#include <vector>

#include "backends/cpu/llvm/headers.h"

namespace lamina::cpu {

// Element j of vector i becomes element i of vector j. Uses only shuffles that are single instructions: within the 128-bit
// lanes of registers (first if not `lanes_first`), and of whole 128-bit lanes. Missing positions or rows should be dropped as
// early as possible, or added as late as possible. LLVM searches for better shuffles through all operands of a shuffle, which
// is most of a kernel's compile time; fences limit that search to two shuffles.
void transpose(llvm::IRBuilder<>& b, std::vector<llvm::Value*>& block, bool lanes_first);

// Keeps LLVM from combining what computes these values with what uses them. Emits no instructions.
void fence(llvm::IRBuilder<>& b, std::vector<llvm::Value*>& block);

}  // namespace lamina::cpu
