// AVX-512 F, VL, DQ and BW: 512-bit vectors and mask registers. Some machines also round to bf16 or compute in f16.
#include <bit>
#include <cstdint>
#include <numeric>

#include "backends/cpu/llvm/x86.h"
#include "backends/cpu/targets/isa/x86_64.h"

namespace lamina::cpu {

namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;

constexpr uint32_t kCurrentRounding = 4;

unsigned bits_of_vector(const Value* vector) {
  return vector->getType()->isVectorTy() ? static_cast<unsigned>(vector->getType()->getPrimitiveSizeInBits()) : 0;
}

llvm::Type* with_elements(const Value* like, llvm::Type* scalar) { return like->getType()->getWithNewType(scalar); }

llvm::SmallVector<int, 32> run_of(int first, int count) {
  llvm::SmallVector<int, 32> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

// ---- x 2^k

// vscalef for one register (16, 8 or 4 floats, half as many doubles), all lanes, current rounding mode.
Value* scale_register(Builder& b, Value* x, Value* k) {
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  const unsigned width = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
  const unsigned bits = width * (is_double ? 64 : 32);
  const auto choose = [&](llvm::Intrinsic::ID single, llvm::Intrinsic::ID twice) { return is_double ? twice : single; };
  Value* const all = llvm::ConstantInt::get(b.getIntNTy(width > 8 ? 16 : 8), ~0ULL);
  if (bits == 512) {
    const auto id = choose(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, llvm::Intrinsic::x86_avx512_mask_scalef_pd_512);
    return b.CreateIntrinsic(id, {}, {x, k, x, all, b.getInt32(kCurrentRounding)});
  }
  const auto id = bits == 256
                      ? choose(llvm::Intrinsic::x86_avx512_mask_scalef_ps_256, llvm::Intrinsic::x86_avx512_mask_scalef_pd_256)
                      : choose(llvm::Intrinsic::x86_avx512_mask_scalef_ps_128, llvm::Intrinsic::x86_avx512_mask_scalef_pd_128);
  return b.CreateIntrinsic(id, {}, {x, k, x, all});
}

// Vectors of several registers are split into registers and concatenated again; instruction selection removes both.
Value* scale_by_power(Builder& b, Value* x, Value* k) {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  const int width = vector == nullptr ? 1 : static_cast<int>(vector->getNumElements());
  const int register_width = is_double ? 8 : 16;
  if (width < (is_double ? 2 : 4) || !std::has_single_bit(static_cast<unsigned>(width))) return nullptr;
  if (width <= register_width) return scale_register(b, x, k);
  llvm::SmallVector<Value*, 8> parts;
  for (int first = 0; first < width; first += register_width) {
    const auto lanes = run_of(first, register_width);
    parts.push_back(scale_register(b, b.CreateShuffleVector(x, lanes), b.CreateShuffleVector(k, lanes)));
  }
  while (parts.size() > 1) {  // the widths are powers of two
    llvm::SmallVector<Value*, 8> joined;
    for (size_t i = 0; i < parts.size(); i += 2) {
      const auto part_type = llvm::cast<llvm::FixedVectorType>(parts[i]->getType());
      const auto lanes = run_of(0, 2 * static_cast<int>(part_type->getNumElements()));
      joined.push_back(b.CreateShuffleVector(parts[i], parts[i + 1], lanes));
    }
    parts = joined;
  }
  return parts.front();
}

// ---- 16-bit types

Value* round_to_f16(Builder& b, Value* x) {
  if (bits_of_vector(x) == 1024) {
    const auto [low, high] = halves_of(b, x);
    Value* const upper = round_to_f16(b, high);
    return b.CreateShuffleVector(round_to_f16(b, low), upper, run_of(0, 32));
  }
  if (bits_of_vector(x) != 512) return targets::eight_to_f16(b, x);
  Value* const nearest_even = b.getInt32(0);
  Value* const nothing = llvm::Constant::getNullValue(with_elements(x, b.getInt16Ty()));
  return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_vcvtps2ph_512, {}, {x, nearest_even, nothing, b.getInt16(0xffff)});
}

// The instructions below flush subnormals to zero and keep a NaN's payload. A vector that contains one uses the integer code.
Value* is_no_bf16(Builder& b, Value* vector) {
  constexpr int kQuietNan = 0x01, kSubnormal = 0x20, kSignallingNan = 0x80;
  return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_fpclass_ps_512, {},
                           {vector, b.getInt32(kQuietNan | kSubnormal | kSignallingNan)});
}

// Converts 16 floats, or 32 in the same time.
TargetHooks::Rounded round_to_bf16(Builder& b, Value* x) {
  const auto as_bits = [&](Value* rounded) { return b.CreateBitCast(rounded, with_elements(x, b.getInt16Ty())); };
  if (bits_of_vector(x) == 1024) {
    const auto [low, high] = halves_of(b, x);
    Value* const rounded = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_512, {}, {high, low});
    Value* const high_is_wrong = is_no_bf16(b, high);
    Value* const is_wrong = b.CreateOr(is_no_bf16(b, low), high_is_wrong);
    return {as_bits(rounded), is_wrong};
  }
  if (bits_of_vector(x) != 512) return {};
  Value* const rounded = as_bits(b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512, {}, {x}));
  return {rounded, is_no_bf16(b, x)};
}

Value* add_products_of_bf16_pairs(Builder& b, Value* sum, Value* first, Value* second) {
  const unsigned lanes = bits_of_vector(sum) / 32;
  auto* const pairs = llvm::FixedVectorType::get(b.getBFloatTy(), 2 * lanes);
  const auto multiply_add = lanes == 4   ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128
                            : lanes == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                                         : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512;
  Value* const factor = b.CreateBitCast(first, pairs);
  return b.CreateIntrinsic(multiply_add, {}, {sum, factor, b.CreateBitCast(second, pairs)});
}

// ---- bytes

// The conversion returns the smallest s32 for values below its range, for those above it and for NaN. Packing saturates at both
// ends, so only NaN and values above the range need extra code. Signed bytes of values from 0 on are below 0 only if a value
// was above the range, so that code is one instruction for all of them.
Value* pack_bytes(Builder& b, const std::vector<Value*>& vectors, bool is_signed, KnownValues known) {
  llvm::Type* const s32 = with_elements(vectors.front(), b.getInt32Ty());
  Value* const largest = llvm::ConstantFP::get(vectors.front()->getType(), is_signed ? 127 : 255);
  const bool ends_bytes = is_signed && known.are_numbers && known.are_nonnegative;
  std::vector<Value*> integers;
  for (Value* value : vectors) {
    Value* const numbers =
        known.are_numbers ? b.getInt16(0xffff) : b.CreateBitCast(b.CreateFCmpORD(value, value), b.getInt16Ty());
    Value* const below_end = ends_bytes ? value : b.CreateSelect(b.CreateFCmpOGT(value, largest), largest, value);
    integers.push_back(
        b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
                          {below_end, llvm::Constant::getNullValue(s32), numbers, b.getInt32(kCurrentRounding)}));
  }
  Value* const bytes = targets::pack_saturated(b, integers, is_signed);
  if (!ends_bytes) return bytes;
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, bytes, llvm::ConstantInt::get(bytes->getType(), 127));
}

// ---- lines of 64 bytes

Value* join_lines(Builder& b, Value* first, Value* from, Value* second) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(first->getType())->getNumElements();
  const auto permute = lanes == 8    ? llvm::Intrinsic::x86_avx512_vpermi2var_pd_512
                       : lanes == 16 ? llvm::Intrinsic::x86_avx512_vpermi2var_ps_512
                                     : llvm::Intrinsic::x86_avx512_vpermi2var_hi_512;
  return b.CreateIntrinsic(permute, {}, {first, from, second});
}

constexpr TargetHooks kHooks{.scale_by_power = scale_by_power,
                             .round_to_f16 = round_to_f16,
                             .round_to_bf16 = round_to_bf16,
                             .pack_bytes = pack_bytes,
                             .add_products_of_pairs = targets::add_products_of_pairs,
                             .add_products_of_bytes = targets::add_products_of_bytes,
                             .add_pairs_of_bytes = targets::add_pairs_of_bytes,
                             .add_products_of_bf16_pairs = add_products_of_bf16_pairs,
                             .join_lines = join_lines};

}  // namespace

// Uses the processor's own name, so that instructions are scheduled for it.
constinit const Target targets::avx512{.name = "avx512",
                                       .architecture = &x86_64,
                                       .contains = &avx2,
                                       .needs = "avx512f,avx512vl,avx512dq,avx512bw",
                                       .plain_cpu = "x86-64-v4",
                                       .names_processor = true,
                                       .needs_for_bf16 = "avx512bf16",
                                       .needs_for_bf16_tiles = "amx-bf16",
                                       .needs_for_f16 = "avx512fp16",
                                       .needs_for_bytes = "avx512vnni",
                                       .vector_bits = 512,
                                       .rounds_to_integer = true,
                                       .converts_f16 = true,
                                       .keeps_masks_in_bits = true,
                                       .rounds_pairs = true,
                                       .packs_bytes = true,
                                       .joins_lines = true,
                                       .has_many_registers = true,
                                       .registers = 32,
                                       .hooks = &kHooks};

}  // namespace lamina::cpu
