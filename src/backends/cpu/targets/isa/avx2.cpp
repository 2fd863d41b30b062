// AVX2, FMA and F16C: vectors of 256 bits.
#include "backends/cpu/llvm/x86.h"
#include "backends/cpu/targets/isa/x86_64.h"

namespace lamina::cpu {

llvm::Value* targets::eight_to_f16(llvm::IRBuilder<>& b, llvm::Value* x) {
  if (!x->getType()->isVectorTy() || x->getType()->getPrimitiveSizeInBits() != 256) return nullptr;
  llvm::Value* const nearest_even = b.getInt32(0);
  return b.CreateIntrinsic(llvm::Intrinsic::x86_vcvtps2ph_256, {}, {x, nearest_even});
}

static constexpr TargetHooks kHooks{.round_to_f16 = targets::eight_to_f16,
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
                                     .hooks = &kHooks};

}  // namespace lamina::cpu
