// Elements of four bits, two to a byte.
#pragma once

#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

// The address of an arg of such elements, which counts nibbles.
llvm::Value* nibble_address(llvm::IRBuilder<>& b, llvm::Value* byte_pointer);

// At lanes.offset steps of `stride` from `address`: one nibble a lane, in the low half of an i8. What is in the high half means
// nothing of loaded ones and is 0 of those to store.
llvm::Value* load_nibbles(Emission& e, llvm::Value* address, const kernel::Arg& arg, const Lanes& lanes, int64_t stride);
void store_nibbles(Emission& e, llvm::Value* address, const kernel::Arg& arg, llvm::Value* raw, const Lanes& lanes,
                   int64_t stride);

}  // namespace lamina::cpu
