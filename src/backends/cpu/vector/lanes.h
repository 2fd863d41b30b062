// The base of the emitters of mathematics: an IRBuilder for one floating-point type (scalar or fixed vector), the integer
// type of the same layout, and short names for the emitted operations. Internal to src/backends/cpu/vector.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>

#include "backends/cpu/code/llvm_headers.h"
#include "backends/cpu/vector/math.h"
#include "interface/status.h"

namespace lamina::cpu {

class FloatLanes {
 public:
  using V = llvm::Value*;

  FloatLanes(llvm::IRBuilder<>& builder, llvm::Type* type);

  llvm::IRBuilder<>& builder() const { return b_; }
  llvm::Type* type() const { return type_; }
  llvm::Type* int_type() const { return int_type_; }
  bool is_double() const { return double_; }
  int width() const;  // lanes; 1 for a scalar
  int mantissa_bits() const { return double_ ? 52 : 23; }
  int bias() const { return double_ ? 1023 : 127; }
  // A number that differs between the two element types.
  double pick(double for_float, double for_double) const { return double_ ? for_double : for_float; }

  V constant(double value) const;
  V infinity() const { return constant(HUGE_VAL); }
  V nan() const;
  V int_constant(uint64_t value) const { return llvm::ConstantInt::get(int_type_, value); }
  static uint64_t bits_of_float(bool is_double, double value);
  uint64_t bits_of(double value) const { return bits_of_float(double_, value); }

  V bits(V x) const { return b_.CreateBitCast(x, int_type_); }
  V from_bits(V x) const { return b_.CreateBitCast(x, type_); }

  V add(V x, V y) const { return b_.CreateFAdd(x, y); }
  V sub(V x, V y) const { return b_.CreateFSub(x, y); }
  V mul(V x, V y) const { return b_.CreateFMul(x, y); }
  V div(V x, V y) const { return b_.CreateFDiv(x, y); }
  V neg(V x) const { return b_.CreateFNeg(x); }
  V fma(V x, V y, V z) const { return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {x, y, z}); }
  V add(V x, double y) const { return add(x, constant(y)); }
  V sub(V x, double y) const { return sub(x, constant(y)); }
  V mul(V x, double y) const { return mul(x, constant(y)); }
  V abs(V x) const { return b_.CreateIntrinsic(llvm::Intrinsic::fabs, {type_}, {x}); }
  V sqrt(V x) const { return b_.CreateIntrinsic(llvm::Intrinsic::sqrt, {type_}, {x}); }
  V copysign(V magnitude, V sign) const { return b_.CreateIntrinsic(llvm::Intrinsic::copysign, {type_}, {magnitude, sign}); }

  V less(V x, double y) const { return b_.CreateFCmpOLT(x, constant(y)); }
  V greater(V x, double y) const { return b_.CreateFCmpOGT(x, constant(y)); }
  V equal(V x, double y) const { return b_.CreateFCmpOEQ(x, constant(y)); }
  V is_nan(V x) const { return b_.CreateFCmpUNO(x, x); }
  V select(V condition, V x, V y) const { return b_.CreateSelect(condition, x, y); }
  // Clamps. NaN passes through unchanged; some machines have a max or min instruction with this behaviour.
  V at_least(V x, double low) const { return select(less(x, low), constant(low), x); }
  V at_most(V x, double high) const { return select(greater(x, high), constant(high), x); }

  // Computes rare() if any lane of `condition` is set, else returns `usual`.
  V where_any(V condition, V usual, const std::function<V()>& rare, const Instructions& target) const;
  // Returns rare() in lanes with `is_rare`, `usual` in others. The code of rare() runs only if there is such a lane.
  V with_rare(V is_rare, V usual, const std::function<V()>& rare, const Instructions& target) const;

  // c[0] + x (c[1] + x (c[2] + ...)), with one fma per step.
  V horner(std::span<const double> c, V x) const;
  // The same sum as a tree over x, x^2, x^4, ...: it has a few more multiplications and a much shorter dependence chain.
  V estrin(std::span<const double> c, V x) const;

 private:
  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
  llvm::Type* int_type_;
  bool double_;
};

// ln 2 in two parts, and for double a third. k times the first is exact for every k that a reduction produces.
inline constexpr double kLn2HighFloat = 0x1.62e4p-1, kLn2LowFloat = 0x1.7f7d1cp-20;
inline constexpr double kLn2HighDouble = 0x1.62e42feep-1, kLn2LowDouble = 0x1.a39ef35793c76p-33;
inline constexpr double kLn2LastDouble = 0x1.cc01f97b57a08p-87;

// y = k ln 2 + r, with |r| at most slightly more than ln(2) / 2.
struct ExpReduction {
  llvm::Value* r = nullptr;
  llvm::Value* k = nullptr;     // an integer, as floating point
  llvm::Value* bits = nullptr;  // its lowest bits are k + offset
};

// `low` (may be null) is a correction to y below its last place. `offset`: see scale_by_power and power_field. `least_k`
// bounds k from below, for callers that accept a larger |r| there.
ExpReduction reduce_exp(const FloatLanes& l, llvm::Value* y, llvm::Value* low, int64_t offset, double least_k = -HUGE_VAL);
// exp(r), and exp(r) - 1 with a small relative error, for the reduced r.
llvm::Value* exp_polynomial(const FloatLanes& l, llvm::Value* r);
llvm::Value* expm1_polynomial(const FloatLanes& l, llvm::Value* r);
// x 2^k rounded once, including overflow and underflow. Requires that the reduction's offset is twice the bias, and |k| below
// 1.05 bias + 25.
llvm::Value* scale_by_power(const FloatLanes& l, llvm::Value* x, const ExpReduction& reduction, const Instructions& target);
// The bits of 2^(k + shift). The reduction's offset must be bias + shift, and the power a normal number.
llvm::Value* power_field(const FloatLanes& l, const ExpReduction& reduction);
llvm::Value* power(const FloatLanes& l, const ExpReduction& reduction);

// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), exactly, for positive finite x.
struct LogReduction {
  llvm::Value* f = nullptr;
  llvm::Value* k = nullptr;      // an integer, as floating point
  llvm::Value* k_int = nullptr;  // as an integer, without the shift for subnormals
};
LogReduction reduce_log(const FloatLanes& l, llvm::Value* x, bool may_be_subnormal);

}  // namespace lamina::cpu
