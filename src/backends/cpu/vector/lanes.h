// LLVM's values as lanes of kernels/math: an IRBuilder for one floating-point type (scalar or fixed vector), the integer type
// of the same layout, and short names for the emitted operations. Internal to src/backends/cpu/vector.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/vector/math.h"
#include "interface/status.h"
#include "kernels/math/lanes.h"

namespace lamina::cpu {

class FloatLanes {
 public:
  using V = llvm::Value*;
  using Value = V;
  using Integer = V;
  using Mask = V;
  using Index = int;
  using Wide = FloatLanes;

  FloatLanes(llvm::IRBuilder<>& builder, llvm::Type* type, const Instructions& target = {});

  llvm::IRBuilder<>& builder() const { return b_; }
  llvm::Type* type() const { return type_; }
  llvm::Type* int_type() const { return int_type_; }
  bool is_double() const { return double_; }

  V constant(double value) const;
  V integer(uint64_t value) const { return llvm::ConstantInt::get(int_type_, value); }
  uint64_t bits_of(double value) const;

  V bits(V x) const { return b_.CreateBitCast(x, int_type_); }
  V from_bits(V x) const { return b_.CreateBitCast(x, type_); }
  V to_real(V x) const { return b_.CreateSIToFP(x, type_); }

  V add(V x, V y) const { return b_.CreateFAdd(x, y); }
  V sub(V x, V y) const { return b_.CreateFSub(x, y); }
  V mul(V x, V y) const { return b_.CreateFMul(x, y); }
  V div(V x, V y) const { return b_.CreateFDiv(x, y); }
  V neg(V x) const { return b_.CreateFNeg(x); }
  V fma(V x, V y, V z) const { return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {x, y, z}); }
  V abs(V x) const { return b_.CreateIntrinsic(llvm::Intrinsic::fabs, {type_}, {x}); }
  V sqrt(V x) const { return b_.CreateIntrinsic(llvm::Intrinsic::sqrt, {type_}, {x}); }
  V copysign(V magnitude, V sign) const { return b_.CreateIntrinsic(llvm::Intrinsic::copysign, {type_}, {magnitude, sign}); }

  V less(V x, V y) const { return b_.CreateFCmpOLT(x, y); }
  V less_equal(V x, V y) const { return b_.CreateFCmpOLE(x, y); }
  V greater(V x, V y) const { return b_.CreateFCmpOGT(x, y); }
  V greater_equal(V x, V y) const { return b_.CreateFCmpOGE(x, y); }
  V equal(V x, V y) const { return b_.CreateFCmpOEQ(x, y); }
  V is_nan(V x) const { return b_.CreateFCmpUNO(x, x); }
  V mask_not(V m) const { return b_.CreateNot(m); }
  V mask_and(V m, V n) const { return b_.CreateAnd(m, n); }
  V select(V condition, V x, V y) const { return b_.CreateSelect(condition, x, y); }
  V integer_select(V condition, V x, V y) const { return select(condition, x, y); }

  V integer_add(V x, V y) const { return b_.CreateAdd(x, y); }
  V integer_sub(V x, V y) const { return b_.CreateSub(x, y); }
  V integer_and(V x, V y) const { return b_.CreateAnd(x, y); }
  V integer_or(V x, V y) const { return b_.CreateOr(x, y); }
  V integer_xor(V x, V y) const { return b_.CreateXor(x, y); }
  V shift_left(V x, int count) const { return b_.CreateShl(x, integer(static_cast<uint64_t>(count))); }
  V shift_right(V x, int count) const { return b_.CreateLShr(x, integer(static_cast<uint64_t>(count))); }
  V signed_shift_right(V x, int count) const { return b_.CreateAShr(x, integer(static_cast<uint64_t>(count))); }
  V integer_is_zero(V x) const { return b_.CreateICmpEQ(x, integer(0)); }
  V integer_less(V x, V y) const { return b_.CreateICmpULT(x, y); }
  V signed_greater(V x, V y) const { return b_.CreateICmpSGT(x, y); }

  V word_product(V x, uint32_t factor) const { return b_.CreateMul(b_.CreateAnd(x, integer(0xffffffff)), integer(factor)); }
  V broadcast(V x) const;
  V to_integer(V inside, kernel::math::IntegerForm form, V is_above, V is_below) const;

  FloatLanes wide() const { return {b_, type_->getWithNewType(b_.getDoubleTy()), target_}; }
  V widen(V x) const { return b_.CreateFPExt(x, wide().type()); }
  V narrow(V x) const { return b_.CreateFPTrunc(x, type_); }

  // x 2^k and a rounding by the machine's instruction, if it has one for vectors of this type.
  std::optional<V> scale_by_power(V x, V k) const;
  std::optional<V> rounded(V x, kernel::math::Rounding rounding) const;

  // Computes rare() if any lane of `condition` is set, else returns `usual`.
  V where_any(V condition, V usual, const std::function<V()>& rare) const;
  // Returns rare() in lanes with `is_rare`, `usual` in others. The code of rare() runs only if there is such a lane.
  V with_rare(V is_rare, V usual, const std::function<V()>& rare) const {
    return where_any(is_rare, usual, [&] { return select(is_rare, rare(), usual); });
  }
  // Without a loop.
  template <typename State, typename Body>
  State repeat(int count, State state, Body body) const {
    for (int i = 0; i < count; ++i) state = body(i, state);
    return state;
  }
  V table_entry(int, int i, double (*entry)(int)) const { return constant(entry(i)); }

 private:
  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
  llvm::Type* int_type_;
  bool double_;
  Instructions target_;
};

}  // namespace lamina::cpu
