// Conversion between stored elements and the compute type of kernels (f32, or f64 for f64), as LLVM IR.
//
// The bits equal those of load_as_double and store_from_double (interface/data_type.h) on every instruction set. The LLVM
// types of stored elements are: f32 float, f64 double, for all others an integer of as many bits; s4 and u4 one value in the
// low four bits of an i8 (the caller packs two into a byte). Storing rounds to nearest even. Integers saturate, and NaN becomes
// 0; boolean is value != 0 (NaN is true). A NaN stays NaN: sign and upper payload bits are kept and the quiet bit is set; in a
// format without infinity it is the only NaN code with the sign.
#pragma once

#include <vector>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/targets/isa/target_hooks.h"
#include "backends/cpu/vector/math.h"
#include "interface/data_type.h"

namespace lamina::cpu {

// The type in which one stored element is loaded and stored, as listed above. Throws Error for undef.
llvm::Type* storage_type(llvm::LLVMContext& context, DataType type);

// `raw` and the result are scalars or fixed vectors of the same width. Values from f64 are rounded only once.
llvm::Value* emit_to_f32(llvm::IRBuilder<>& b, DataType type, llvm::Value* raw, const Instructions& target = {});
llvm::Value* emit_to_f64(llvm::IRBuilder<>& b, DataType type, llvm::Value* raw, const Instructions& target = {});
llvm::Value* emit_from_f32(llvm::IRBuilder<>& b, DataType type, llvm::Value* value, const Instructions& target = {});
// What a value from f32 or f64 is after it was stored as s8 or u8.
llvm::Value* emit_rounded_to_byte(llvm::IRBuilder<>& b, DataType type, llvm::Value* value, const Instructions& target = {});
llvm::Value* emit_from_f64(llvm::IRBuilder<>& b, DataType type, llvm::Value* value, const Instructions& target = {});

// Converts a kernel's integers or booleans, which are unsigned, to f32 or f64.
llvm::Value* emit_from_integers(llvm::IRBuilder<>& b, llvm::Value* value, bool is_signed, llvm::Type* result_type,
                                const Instructions& target);
// From 64 bits to f64, exactly up to 2^53; beyond that to odd, so that a second rounding, to fewer bits, gives what one would.
llvm::Value* emit_odd_f64_from_integers(llvm::IRBuilder<>& b, llvm::Value* value, bool is_signed);

// Converts four vectors of 16 floats, one after the other, to 64 elements of `type` (s8 or u8) with the bits of
// emit_from_f32. For targets that pack bytes.
llvm::Value* emit_bytes_from_f32(llvm::IRBuilder<>& b, DataType type, const std::vector<llvm::Value*>& vectors,
                                 KnownValues known, const Instructions& target);

}  // namespace lamina::cpu
