// What the targets of x86-64 have in common.
#pragma once

#include "backends/cpu/targets/target_hooks.h"

namespace lamina::cpu::targets {

// Eight floats to f16; null of any other number.
llvm::Value* eight_to_f16(llvm::IRBuilder<>& b, llvm::Value* x);

}  // namespace lamina::cpu::targets
