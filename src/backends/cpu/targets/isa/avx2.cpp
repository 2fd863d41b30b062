// AVX2, FMA and F16C: vectors of 256 bits.
#include "backends/cpu/llvm/x86.h"
#include "backends/cpu/targets/isa/x86_64.h"

namespace lamina::cpu {

llvm::Value* targets::eight_to_f16(llvm::IRBuilder<>& b, llvm::Value* x) {
  if (!x->getType()->isVectorTy() || x->getType()->getPrimitiveSizeInBits() != 256) return nullptr;
  llvm::Value* const nearest_even = b.getInt32(0);
  return b.CreateIntrinsic(llvm::Intrinsic::x86_vcvtps2ph_256, {}, {x, nearest_even});
}

// The conversion returns the smallest s32 for values below its range, for those above it and for NaN. Packing turns it into the
// smallest byte: 0, as NaN needs, if that is unsigned.
static llvm::Value* pack_bytes(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& vectors, bool is_signed,
                               KnownValues known) {
  llvm::Type* const s32 = vectors.front()->getType()->getWithNewType(b.getInt32Ty());
  llvm::Value* const largest = llvm::ConstantFP::get(vectors.front()->getType(), is_signed ? 127 : 255);
  std::vector<llvm::Value*> integers;
  for (llvm::Value* value : vectors) {
    llvm::Value* const below_end = b.CreateSelect(b.CreateFCmpOGT(value, largest), largest, value);
    llvm::Value* const rounded = b.CreateIntrinsic(llvm::Intrinsic::x86_avx_cvt_ps2dq_256, {}, {below_end});
    const bool is_number = !is_signed || known.are_numbers;
    integers.push_back(is_number ? rounded : b.CreateAnd(rounded, b.CreateSExt(b.CreateFCmpORD(value, value), s32)));
  }
  return targets::pack_saturated(b, integers, is_signed);
}

static constexpr TargetHooks kHooks{.round_to_f16 = targets::eight_to_f16,
                                    .pack_bytes = pack_bytes,
                                    .add_products_of_pairs = targets::add_products_of_pairs,
                                    .add_products_of_bytes = targets::add_products_of_bytes,
                                    .add_pairs_of_bytes = targets::add_pairs_of_bytes};

// Code is for a level of x86-64, not for a particular processor, so that it is the same on all of them.
constinit const Target targets::avx2{.name = "avx2",
                                     .architecture = &x86_64,
                                     .contains = &generic,
                                     .needs = "avx2,fma,f16c",
                                     .plain_cpu = "x86-64-v3",
                                     .vector_bits = 256,
                                     .rounds_to_integer = true,
                                     .converts_f16 = true,
                                     .rounds_pairs = true,
                                     .packs_bytes = true,
                                     .hooks = &kHooks};

}  // namespace lamina::cpu
