// Elements of four bits, two per byte.
#pragma once

#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

// The address of such an arg, which counts nibbles.
llvm::Value* nibble_address(llvm::IRBuilder<>& b, llvm::Value* byte_pointer);

// At lanes.offset steps of `stride` from `address`: one nibble per lane, in the low half of an i8. The high half is undefined
// after loads and must be 0 for stores.
llvm::Value* load_nibbles(Emission& e, llvm::Value* address, const kernel::Arg& arg, const Lanes& lanes, int64_t stride);
void store_nibbles(Emission& e, llvm::Value* address, const kernel::Arg& arg, llvm::Value* raw, const Lanes& lanes,
                   int64_t stride);

}  // namespace lamina::cpu
