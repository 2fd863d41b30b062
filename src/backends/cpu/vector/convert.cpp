// Conversions in integer arithmetic, used if the machine has no instruction with the same bits as other machines. A small
// float has m mantissa bits and exponent bias B, float has 23 and 127; `code` is its bits without the sign.
#include "backends/cpu/vector/convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "backends/cpu/targets/isa/target_hooks.h"
#include "backends/cpu/vector/lanes.h"
#include "interface/small_float.h"
#include "interface/status.h"
#include "kernels/math/rounding.h"

namespace lamina::cpu {
namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;

constexpr SmallFloat kF16 = small_float(DataType::f16), kBf16 = small_float(DataType::bf16);

constexpr uint32_t kFloatSign = 0x80000000, kFloatMagnitude = 0x7fffffff, kFloatInfinity = 0x7f800000, kFloatQuiet = 0x00400000;

llvm::Type* lanes_of(Value* like, llvm::Type* scalar) { return like->getType()->getWithNewType(scalar); }
FloatLanes float_lanes(Builder& b, Value* like) { return FloatLanes(b, lanes_of(like, b.getFloatTy())); }
FloatLanes double_lanes(Builder& b, Value* like) { return FloatLanes(b, lanes_of(like, b.getDoubleTy())); }

// bf16 differs from float only in length. Ties to even: adds half a step minus one, plus one if the remaining part is odd.
Value* bf16_code(const FloatLanes& l, Value* bits, Value* value) {
  auto& b = l.builder();
  Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), 1);
  Value* rounded = b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(odd, l.integer(0x7fff))), 16);
  Value* nan = b.CreateOr(b.CreateLShr(b.CreateAnd(bits, kFloatSign), 16), l.integer(kBf16.nan));
  return b.CreateSelect(l.is_nan(value), nan, rounded);
}

Value* bf16_by_integers(const FloatLanes& l, Value* value) {
  return l.builder().CreateTrunc(bf16_code(l, l.bits(value), value), lanes_of(value, l.builder().getInt16Ty()));
}

// Uses the machine's rounding if it has one for vectors of this type.
Value* bf16_from_float(Builder& b, const FloatLanes& l, Value* value, const Instructions& target) {
  if (!target.rounds_to_bf16) return bf16_by_integers(l, value);
  const auto [bits, is_wrong] = target->hooks->round_to_bf16(b, value);
  if (bits == nullptr) return bf16_by_integers(l, value);
  if (is_wrong == nullptr) return bits;
  return l.where_any(is_wrong, bits, [&] { return bf16_by_integers(l, value); });
}

// All other small floats. Normal results are rounded as integers. Subnormal results are rounded by adding the float whose
// last place is the smallest subnormal. A carry out of the mantissa increments the exponent.
Value* small_code(const FloatLanes& l, const SmallFloat& format, Value* bits) {
  auto& b = l.builder();
  const int dropped = 23 - format.mantissa_bits;
  Value* magnitude = b.CreateAnd(bits, l.integer(kFloatMagnitude));
  Value* odd = b.CreateAnd(b.CreateLShr(magnitude, static_cast<uint64_t>(dropped)), 1);
  const uint32_t rebias = static_cast<uint32_t>(127 - format.bias) << 23;
  const uint32_t half = (1U << (dropped - 1)) - 1;
  Value* normal = b.CreateAdd(b.CreateAdd(magnitude, odd), l.integer(half - rebias));
  normal = b.CreateLShr(normal, static_cast<uint64_t>(dropped));

  const double shifter = std::ldexp(1.0, 23 + 1 - format.bias - format.mantissa_bits);
  Value* subnormal = b.CreateSub(l.bits(l.add(l.from_bits(magnitude), shifter)), l.integer(l.bits_of(shifter)));
  Value* smallest_normal = l.integer(l.bits_of(std::ldexp(1.0, 1 - format.bias)));
  Value* code = b.CreateSelect(b.CreateICmpULT(magnitude, smallest_normal), subnormal, normal);

  Value* infinity = l.integer(format.infinity);
  code = b.CreateSelect(b.CreateICmpUGT(code, infinity), infinity, code);
  if (format.has_infinity()) {
    Value* is_nan = b.CreateICmpUGT(magnitude, l.integer(kFloatInfinity));
    code = b.CreateSelect(is_nan, l.integer(format.nan), code);
  }
  Value* sign = b.CreateLShr(b.CreateAnd(bits, l.integer(kFloatSign)), static_cast<uint64_t>(32 - format.bits));
  return b.CreateOr(sign, code);
}

// The conversion instruction as a function of integers, if there is one for vectors of this width. Vectors of half would
// select the same instruction, but on machines that compute in half, LLVM 19 has no store of them past the caches.
Value* f16_round(Builder& b, Value* value, const Instructions& target) {
  if (target->hooks != nullptr && target->hooks->round_to_f16 != nullptr) {
    if (Value* const rounded = target->hooks->round_to_f16(b, value)) return rounded;
  }
  return b.CreateBitCast(b.CreateFPTrunc(value, lanes_of(value, b.getHalfTy())), lanes_of(value, b.getInt16Ty()));
}

// The instruction makes a NaN quiet and keeps its payload. Quiet NaNs are the largest codes of their sign, signed for
// positive and unsigned for negative ones, so two minima remove the payload.
Value* f16_by_instruction(Builder& b, Value* value, const Instructions& target) {
  Value* const code = f16_round(b, value, target);
  const auto at_most = [&](llvm::Intrinsic::ID minimum, Value* x, uint32_t limit) {
    return b.CreateBinaryIntrinsic(minimum, x, llvm::ConstantInt::get(x->getType(), limit));
  };
  return at_most(llvm::Intrinsic::umin, at_most(llvm::Intrinsic::smin, code, kF16.nan), 0x8000 | kF16.nan);
}

Value* small_from_float(Builder& b, DataType type, Value* value, const Instructions& target) {
  const FloatLanes l(b, value->getType(), target);
  if (type == DataType::f16 && target->converts_f16) return f16_by_instruction(b, value, target);
  Value* bits = l.bits(value);
  switch (type) {
    case DataType::bf16: return bf16_from_float(b, l, value, target);
    default: return b.CreateTrunc(small_code(l, small_float(type), bits), lanes_of(value, storage_type(b.getContext(), type)));
  }
}

// Moves code and sign to float's bit positions and corrects the bias. A subnormal gets a temporary exponent, which an exact
// subtraction removes; no operand is a subnormal float.
Value* float_from_small(Builder& b, const SmallFloat& format, Value* raw) {
  const FloatLanes l = float_lanes(b, raw);
  const int shift = 23 - format.mantissa_bits;
  const uint32_t rebias = static_cast<uint32_t>(127 - format.bias) << 23;
  Value* code = b.CreateZExt(raw, l.int_type());
  const uint32_t sign_bit = 1U << (format.bits - 1);
  Value* sign = b.CreateShl(b.CreateAnd(code, l.integer(sign_bit)), static_cast<uint64_t>(32 - format.bits));
  code = b.CreateAnd(code, l.integer(sign_bit - 1));
  Value* normal = b.CreateAdd(b.CreateShl(code, static_cast<uint64_t>(shift)), l.integer(rebias));
  const double smallest_normal = std::ldexp(1.0, 1 - format.bias);
  Value* subnormal = l.bits(l.sub(l.from_bits(b.CreateAdd(normal, l.integer(1U << 23))), smallest_normal));
  Value* result = b.CreateSelect(b.CreateICmpULT(code, l.integer(1U << format.mantissa_bits)), subnormal, normal);
  if (format.has_infinity()) {  // sets infinity's exponent, and makes NaN quiet
    Value* special = b.CreateOr(b.CreateShl(code, static_cast<uint64_t>(shift)), l.integer(kFloatInfinity));
    Value* quiet = b.CreateOr(special, l.integer(kFloatQuiet));
    special = b.CreateSelect(b.CreateICmpUGT(code, l.integer(format.infinity)), quiet, special);
    result = b.CreateSelect(b.CreateICmpUGE(code, l.integer(format.infinity)), special, result);
  } else {
    Value* nan = l.integer(kFloatInfinity | kFloatQuiet);
    result = b.CreateSelect(b.CreateICmpEQ(code, l.integer(format.nan)), nan, result);
  }
  return l.from_bits(b.CreateOr(result, sign));
}

Value* float_from_f16(Builder& b, Value* raw, const Instructions& target) {
  if (!target->converts_f16) return float_from_small(b, kF16, raw);
  return b.CreateFPExt(b.CreateBitCast(raw, lanes_of(raw, b.getHalfTy())), lanes_of(raw, b.getFloatTy()));
}

Value* float_from_bf16(Builder& b, Value* raw) {
  Value* bits = b.CreateShl(b.CreateZExt(raw, lanes_of(raw, b.getInt32Ty())), 16);
  return b.CreateBitCast(bits, lanes_of(raw, b.getFloatTy()));
}

// f8_e5m2 is the upper half of f16.
Value* float_from_e5m2(Builder& b, Value* raw, const Instructions& target) {
  if (!target->converts_f16) return float_from_small(b, small_float(DataType::f8_e5m2), raw);
  return float_from_f16(b, b.CreateShl(b.CreateZExt(raw, lanes_of(raw, b.getInt16Ty())), 8), target);
}

// Rounds double to float to odd: toward zero, with the last bit set if the result is inexact. A second rounding then equals a
// single one.
Value* round_to_odd(Builder& b, Value* value) {
  const FloatLanes wide(b, value->getType());
  const FloatLanes l = float_lanes(b, value);
  Value* nearest = b.CreateFPTrunc(value, l.type());
  Value* back = b.CreateFPExt(nearest, value->getType());
  Value* too_far = b.CreateFCmpOGT(wide.abs(back), wide.abs(value));
  Value* toward_zero = b.CreateSub(l.bits(nearest), b.CreateZExt(too_far, l.int_type()));
  Value* odd = b.CreateOr(toward_zero, l.integer(1));
  return b.CreateSelect(b.CreateFCmpONE(back, value), l.from_bits(odd), nearest);
}

struct IntegerRange {
  int bits;
  bool is_signed;
  double low() const { return is_signed ? -std::ldexp(1.0, bits - 1) : 0; }
  double end() const { return std::ldexp(1.0, is_signed ? bits - 1 : bits); }  // one past the largest
};
IntegerRange range_of(DataType type) {
  switch (type) {
    case DataType::s64: return {64, true};
    case DataType::s32: return {32, true};
    case DataType::s8: return {8, true};
    case DataType::u8: return {8, false};
    case DataType::s4: return {4, true};
    default: return {4, false};  // u4
  }
}

// For ranges that fit the mantissa: adding 1.5 2^mantissa_bits rounds to an integer, which is then in the lowest bits.
Value* narrow_integer(const FloatLanes& l, const IntegerRange& range, Value* value, llvm::Type* result_type) {
  auto& b = l.builder();
  value = l.select(l.is_nan(value), l.constant(0), value);
  value = l.at_most(l.at_least(value, range.low()), range.end() - 1);
  Value* integer = b.CreateTrunc(l.bits(l.add(value, std::ldexp(1.5, l.mantissa_bits()))), result_type);
  return range.bits == 4 ? b.CreateAnd(integer, 0xf) : integer;
}

// For ranges whose largest value is not a floating-point number: converts values inside, and returns the ends for others.
Value* wide_integer(const FloatLanes& l, const IntegerRange& range, Value* value, llvm::Type* result_type) {
  auto& b = l.builder();
  const auto width = static_cast<unsigned>(range.bits);
  Value* below_end = l.less(value, range.end());
  Value* from_low = b.CreateFCmpOGE(value, l.constant(range.low()));
  Value* inside = l.select(b.CreateAnd(below_end, from_low), value, l.constant(0));
  Value* integer = b.CreateFPToSI(round_half_even(kernel::math::Real<FloatLanes>{&l, inside}).value, result_type);
  Value* above = b.CreateFCmpOGE(value, l.constant(range.end()));
  Value* largest = llvm::ConstantInt::get(result_type, llvm::APInt::getSignedMaxValue(width));
  Value* smallest = llvm::ConstantInt::get(result_type, llvm::APInt::getSignedMinValue(width));
  integer = b.CreateSelect(above, largest, integer);
  return b.CreateSelect(l.less(value, range.low()), smallest, integer);
}

Value* integer_from(Builder& b, DataType type, Value* value, const Instructions& target) {
  const FloatLanes l(b, value->getType(), target);
  llvm::Type* result_type = lanes_of(value, storage_type(b.getContext(), type));
  const IntegerRange range = range_of(type);
  if (range.bits < l.mantissa_bits()) return narrow_integer(l, range, value, result_type);
  return wide_integer(l, range, value, result_type);
}

Value* boolean_from(Builder& b, Value* value) {
  const FloatLanes l(b, value->getType());
  return b.CreateZExt(b.CreateFCmpUNE(value, l.constant(0)), lanes_of(value, b.getInt8Ty()));
}

Value* floating_from_integer(Builder& b, DataType type, Value* raw, llvm::Type* result_type, const Instructions& target) {
  switch (type) {
    case DataType::boolean: {
      Value* is_true = b.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
      return b.CreateSelect(is_true, llvm::ConstantFP::get(result_type, 1.0), llvm::ConstantFP::get(result_type, 0.0));
    }
    case DataType::u8: return b.CreateUIToFP(raw, result_type);
    case DataType::u4: return b.CreateUIToFP(b.CreateAnd(raw, 0xf), result_type);
    case DataType::s4: return b.CreateSIToFP(b.CreateAShr(b.CreateShl(raw, 4), 4), result_type);
    default: return emit_from_integers(b, raw, result_type, target);
  }
}

void check_storage(Builder& b, DataType type, Value* raw) {
  LAMINA_CHECK(raw->getType()->getScalarType() == storage_type(b.getContext(), type),
               join("a value of another type was given as stored ", name_of(type)));
}

}  // namespace

llvm::Type* storage_type(llvm::LLVMContext& context, DataType type) {
  switch (type) {
    case DataType::f64: return llvm::Type::getDoubleTy(context);
    case DataType::f32: return llvm::Type::getFloatTy(context);
    case DataType::undef: break;
    default: return llvm::Type::getIntNTy(context, static_cast<unsigned>(std::max(bits_of(type), 8)));
  }
  throw Error(Status::invalid_data_type, join("elements of type ", name_of(type), " cannot be stored"));
}

Value* emit_to_f32(Builder& b, DataType type, Value* raw, const Instructions& target) {
  check_storage(b, type, raw);
  llvm::Type* result_type = lanes_of(raw, b.getFloatTy());
  switch (type) {
    case DataType::f64: return b.CreateFPTrunc(raw, result_type);
    case DataType::f32: return raw;
    case DataType::bf16: return float_from_bf16(b, raw);
    case DataType::f16: return float_from_f16(b, raw, target);
    case DataType::f8_e5m2: return float_from_e5m2(b, raw, target);
    default:
      if (is_floating(type)) return float_from_small(b, small_float(type), raw);
      return floating_from_integer(b, type, raw, result_type, target);
  }
}

Value* emit_to_f64(Builder& b, DataType type, Value* raw, const Instructions& target) {
  if (type == DataType::f64) return raw;
  llvm::Type* result_type = double_lanes(b, raw).type();
  if (is_floating(type)) return b.CreateFPExt(emit_to_f32(b, type, raw, target), result_type);
  check_storage(b, type, raw);
  return floating_from_integer(b, type, raw, result_type, target);
}

Value* emit_from_f32(Builder& b, DataType type, Value* value, const Instructions& target) {
  LAMINA_CHECK(value->getType()->getScalarType()->isFloatTy(), "emit_from_f32 takes float");
  if (type == DataType::f32) return value;
  if (type == DataType::f64) return b.CreateFPExt(value, lanes_of(value, b.getDoubleTy()));
  if (type == DataType::boolean) return boolean_from(b, value);
  if (is_floating(type)) return small_from_float(b, type, value, target);
  return integer_from(b, type, value, target);
}

Value* emit_from_f64(Builder& b, DataType type, Value* value, const Instructions& target) {
  LAMINA_CHECK(value->getType()->getScalarType()->isDoubleTy(), "emit_from_f64 takes double");
  if (type == DataType::f64) return value;
  if (type == DataType::f32) return b.CreateFPTrunc(value, lanes_of(value, b.getFloatTy()));
  if (type == DataType::boolean) return boolean_from(b, value);
  if (is_floating(type)) return small_from_float(b, type, round_to_odd(b, value), target);
  return integer_from(b, type, value, target);
}

// The last 11 bits of a number of more than 53 bits become one bit that says whether any was set.
Value* emit_odd_f64_from_s64(Builder& b, Value* value) {
  llvm::Type *const type = value->getType(), *const real = type->getWithNewType(b.getDoubleTy());
  const auto number = [&](uint64_t n) { return llvm::ConstantInt::get(type, n); };
  constexpr int kTooMany = 64 - 53;
  constexpr uint64_t kExact = uint64_t{1} << 53, kLost = (uint64_t{1} << kTooMany) - 1;
  Value* const is_large = b.CreateICmpUGT(b.CreateAdd(value, number(kExact)), number(2 * kExact));
  Value* const any_lost = b.CreateZExt(b.CreateICmpNE(b.CreateAnd(value, number(kLost)), number(0)), type);
  Value* const shortened = b.CreateOr(b.CreateAShr(value, number(kTooMany)), any_lost);
  Value* const exact = b.CreateSIToFP(b.CreateSelect(is_large, shortened, value), real);
  return b.CreateFMul(exact, b.CreateSelect(is_large, llvm::ConstantFP::get(real, kLost + 1), llvm::ConstantFP::get(real, 1)));
}

Value* emit_from_integers(Builder& b, Value* value, llvm::Type* result_type, const Instructions& target) {
  const bool rounds = value->getType()->getScalarSizeInBits() == 64 && result_type->getScalarType()->isFloatTy();
  if (rounds && value->getType()->isVectorTy() && !target.architecture->rounds_s64_once)
    return b.CreateFPTrunc(emit_odd_f64_from_s64(b, value), result_type);
  return b.CreateSIToFP(value, result_type);
}

Value* emit_bytes_from_f32(Builder& b, DataType type, const std::vector<Value*>& vectors, const Instructions& target) {
  return target->hooks->pack_bytes(b, vectors, range_of(type).is_signed);
}

}  // namespace lamina::cpu
