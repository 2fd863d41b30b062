// The common part of the targets of x86-64.
#pragma once

#include "backends/cpu/targets/isa/target_hooks.h"

namespace lamina::cpu::targets {

// Converts eight floats to f16; null for any other number.
llvm::Value* eight_to_f16(llvm::IRBuilder<>& b, llvm::Value* x);

// Four vectors of s32 (of 256 or 512 bits) to the bytes that saturate them, one vector after the other.
llvm::Value* pack_saturated(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& vectors, bool is_signed);

// TargetHooks::add_products_of_pairs for vectors of 128, 256 and 512 bits.
llvm::Value* add_products_of_pairs(llvm::IRBuilder<>& b, llvm::Value* sum, llvm::Value* first, llvm::Value* second);

// TargetHooks::add_products_of_bytes for the same vectors.
llvm::Value* add_products_of_bytes(llvm::IRBuilder<>& b, const Instructions& instructions, llvm::Value* sum, llvm::Value* codes,
                                   llvm::Value* bytes, bool are_small);

// TargetHooks::add_pairs_of_bytes for the same vectors.
llvm::Value* add_pairs_of_bytes(llvm::IRBuilder<>& b, const Instructions& instructions, llvm::Value* sums, llvm::Value* codes,
                                llvm::Value* bytes);

}  // namespace lamina::cpu::targets
