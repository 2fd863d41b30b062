// The templates of kernels/math, or the machine's instructions if they have the same bits.
#include "backends/cpu/vector/convert.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/vector/lanes.h"
#include "interface/small_float.h"
#include "interface/status.h"
#include "kernels/math/convert.h"

namespace lamina::cpu {
namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;

using Real = kernel::math::Real<FloatLanes>;
using Bits = kernel::math::Bits<FloatLanes>;

llvm::Type* lanes_of(Value* like, llvm::Type* scalar) { return like->getType()->getWithNewType(scalar); }
FloatLanes float_lanes(Builder& b, Value* like) { return FloatLanes(b, lanes_of(like, b.getFloatTy())); }
FloatLanes double_lanes(Builder& b, Value* like) { return FloatLanes(b, lanes_of(like, b.getDoubleTy())); }

Value* by_integers(const FloatLanes& l, DataType type, Value* value) {
  Value* const code = small_float_from(Real{&l, value}, type).value;
  return l.builder().CreateTrunc(code, lanes_of(value, storage_type(l.builder().getContext(), type)));
}

// Two vectors that become one. One comparison finds a NaN in any lane of both, which is rare.
Value* bf16_from_two(Builder& b, const FloatLanes& l, Value* value) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements();
  Value* const words =
      b.CreateBitCast(bf16_in_upper_half(Real{&l, value}).value, llvm::FixedVectorType::get(b.getInt16Ty(), 2 * lanes));
  std::vector<int> upper;
  for (int lane = 0; lane < static_cast<int>(lanes); ++lane) upper.push_back(2 * lane + 1);
  const auto [first, second] = halves_of(b, value);
  return l.where_any(b.CreateFCmpUNO(first, second), b.CreateShuffleVector(words, upper),
                     [&] { return by_integers(l, DataType::bf16, value); });
}

// Uses the machine's rounding if it has one for vectors of this type.
Value* bf16_from_float(Builder& b, const FloatLanes& l, Value* value, const Instructions& target) {
  const bool are_two = value->getType()->isVectorTy() && target->rounds_pairs &&
                       value->getType()->getPrimitiveSizeInBits() == 2 * static_cast<uint64_t>(vector_bits(target));
  if (!target.rounds_to_bf16) return are_two ? bf16_from_two(b, l, value) : by_integers(l, DataType::bf16, value);
  const auto [bits, is_wrong] = target->hooks->round_to_bf16(b, value);
  if (bits == nullptr) return by_integers(l, DataType::bf16, value);
  if (is_wrong == nullptr) return bits;
  return l.where_any(is_wrong, bits, [&] { return by_integers(l, DataType::bf16, value); });
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
  constexpr uint32_t kNan = small_float(DataType::f16).nan;
  return at_most(llvm::Intrinsic::umin, at_most(llvm::Intrinsic::smin, code, kNan), 0x8000 | kNan);
}

Value* small_from_float(Builder& b, DataType type, Value* value, const Instructions& target) {
  const FloatLanes l(b, value->getType(), target);
  if (type == DataType::f16 && target->converts_f16) return f16_by_instruction(b, value, target);
  return type == DataType::bf16 ? bf16_from_float(b, l, value, target) : by_integers(l, type, value);
}

Value* float_from_small(Builder& b, DataType type, Value* raw) {
  const FloatLanes l = float_lanes(b, raw);
  return from_small_float(Bits{&l, b.CreateZExt(raw, l.int_type())}, type).value;
}

Value* float_from_f16(Builder& b, Value* raw, const Instructions& target) {
  if (!target->converts_f16) return float_from_small(b, DataType::f16, raw);
  return b.CreateFPExt(b.CreateBitCast(raw, lanes_of(raw, b.getHalfTy())), lanes_of(raw, b.getFloatTy()));
}

// f8_e5m2 is the upper half of f16.
Value* float_from_e5m2(Builder& b, Value* raw, const Instructions& target) {
  if (!target->converts_f16) return float_from_small(b, DataType::f8_e5m2, raw);
  return float_from_f16(b, b.CreateShl(b.CreateZExt(raw, lanes_of(raw, b.getInt16Ty())), 8), target);
}

Value* integer_from(Builder& b, DataType type, Value* value, const Instructions& target) {
  const FloatLanes l(b, value->getType(), target);
  const Real x{&l, value};
  const bool is_signed = is_signed_integer(type);
  if (!fits_mantissa(x, bits_of(type))) return wide_integer(x, bits_of(type), is_signed);
  Value* const bits = narrow_integer(x, bits_of(type), is_signed).value;
  Value* const integer = b.CreateTrunc(bits, lanes_of(value, storage_type(b.getContext(), type)));
  return bits_of(type) == 4 ? b.CreateAnd(integer, 0xf) : integer;
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
    case DataType::u4: return b.CreateUIToFP(b.CreateAnd(raw, 0xf), result_type);
    case DataType::s4: return b.CreateSIToFP(b.CreateAShr(b.CreateShl(raw, 4), 4), result_type);
    default: return emit_from_integers(b, raw, is_signed_integer(type), result_type, target);
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
    case DataType::f16: return float_from_f16(b, raw, target);
    case DataType::f8_e5m2: return float_from_e5m2(b, raw, target);
    default:
      if (is_floating(type)) return float_from_small(b, type, raw);
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
  if (is_floating(type)) {
    const FloatLanes wide(b, value->getType()), l = float_lanes(b, value);
    return small_from_float(b, type, to_odd(l, Real{&wide, value}).value, target);
  }
  return integer_from(b, type, value, target);
}

Value* emit_rounded_to_byte(Builder& b, DataType type, Value* value, const Instructions& target) {
  LAMINA_CHECK(is_byte_integer(type), join("emit_rounded_to_byte takes s8 and u8, not ", name_of(type)));
  const FloatLanes l(b, value->getType(), target);
  return narrow_integer_as_real(Real{&l, value}, bits_of(type), is_signed_integer(type)).value;
}

Value* emit_odd_f64_from_integers(Builder& b, Value* value, bool is_signed) {
  const FloatLanes l = double_lanes(b, value);
  return odd_from_integer(Bits{&l, value}, is_signed).value;
}

Value* emit_from_integers(Builder& b, Value* value, bool is_signed, llvm::Type* result_type, const Instructions& target) {
  const bool rounds = value->getType()->getScalarSizeInBits() == 64 && result_type->getScalarType()->isFloatTy();
  const bool rounds_once = is_signed && target.architecture->rounds_s64_once;
  if (rounds && value->getType()->isVectorTy() && !rounds_once)
    return b.CreateFPTrunc(emit_odd_f64_from_integers(b, value, is_signed), result_type);
  return is_signed ? b.CreateSIToFP(value, result_type) : b.CreateUIToFP(value, result_type);
}

Value* emit_bytes_from_f32(Builder& b, DataType type, const std::vector<Value*>& vectors, KnownValues known,
                           const Instructions& target) {
  return target->hooks->pack_bytes(b, vectors, type == DataType::s8, known);
}

}  // namespace lamina::cpu
