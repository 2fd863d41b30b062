// The common part of the targets of x86-64.
#pragma once

#include "backends/cpu/targets/isa/target_hooks.h"

namespace lamina::cpu::targets {

// Converts eight floats to f16; null for any other number.
llvm::Value* eight_to_f16(llvm::IRBuilder<>& b, llvm::Value* x);

}  // namespace lamina::cpu::targets
