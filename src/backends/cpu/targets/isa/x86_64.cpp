// x86-64: the common part of its targets, and the description of the host processor if it is one.
#include "backends/cpu/targets/isa/x86_64.h"

#include <algorithm>
#include <cstdint>

#include "backends/cpu/llvm/x86.h"

namespace lamina::cpu {

namespace {

bool initialize() {
#if defined(LAMINA_LLVM_X86)
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  return true;
#else
  return false;
#endif
}

void mark(llvm::Function& function, const Instructions&, int vector_bits) {
  function.addFnAttr("prefer-vector-width", std::to_string(vector_bits));
  // A conversion of f32 values to f64 is twice as wide, in intrinsics that LLVM does not split.
  function.addFnAttr("min-legal-vector-width", std::to_string(std::min(2 * vector_bits, 512)));
}

constexpr ArchitectureHooks kHooks{.initialize = initialize, .mark = mark};

}  // namespace

// Packing works within quarters of 128 bits; the last step orders the groups of four bytes.
llvm::Value* targets::pack_saturated(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& vectors, bool is_signed) {
  const unsigned groups = llvm::cast<llvm::FixedVectorType>(vectors.front()->getType())->getNumElements();
  const bool is_wide = groups == 16;
  const auto words = is_wide ? llvm::Intrinsic::x86_avx512_packssdw_512 : llvm::Intrinsic::x86_avx2_packssdw;
  const auto bytes = is_signed ? is_wide ? llvm::Intrinsic::x86_avx512_packsswb_512 : llvm::Intrinsic::x86_avx2_packsswb
                     : is_wide ? llvm::Intrinsic::x86_avx512_packuswb_512
                               : llvm::Intrinsic::x86_avx2_packuswb;
  llvm::Value* const low = b.CreateIntrinsic(words, {}, {vectors[0], vectors[1]});
  llvm::Value* const high = b.CreateIntrinsic(words, {}, {vectors[2], vectors[3]});
  llvm::Value* const packed = b.CreateBitCast(b.CreateIntrinsic(bytes, {}, {low, high}), vectors.front()->getType());
  const int quarters = static_cast<int>(groups) / 4;
  llvm::SmallVector<int, 16> order;
  for (int i = 0; i < static_cast<int>(groups); ++i) order.push_back(i % quarters * 4 + i / quarters);
  return b.CreateBitCast(b.CreateShuffleVector(packed, order), llvm::FixedVectorType::get(b.getInt8Ty(), 4 * groups));
}

// With VNNI, LLVM makes one instruction of both.
llvm::Value* targets::add_products_of_pairs(llvm::IRBuilder<>& b, llvm::Value* sum, llvm::Value* first, llvm::Value* second) {
  const uint64_t bits = sum->getType()->getPrimitiveSizeInBits();
  if (bits != 128 && bits != 256 && bits != 512) return nullptr;
  const auto intrinsic = bits == 512   ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                         : bits == 256 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                       : llvm::Intrinsic::x86_sse2_pmadd_wd;
  auto* const pairs = llvm::FixedVectorType::get(b.getInt16Ty(), static_cast<unsigned>(bits / 16));
  const auto as_pairs = [&](llvm::Value* words) { return b.CreateBitCast(words, pairs); };
  return b.CreateAdd(sum, b.CreateIntrinsic(intrinsic, {}, {as_pairs(first), as_pairs(second)}));
}

namespace {

// Saturates sums of two products at 16 bits.
llvm::Value* sums_of_byte_pairs(llvm::IRBuilder<>& b, llvm::Value* codes, llvm::Value* bytes) {
  const uint64_t bits = codes->getType()->getPrimitiveSizeInBits();
  const auto intrinsic = bits == 512   ? llvm::Intrinsic::x86_avx512_pmaddubs_w_512
                         : bits == 256 ? llvm::Intrinsic::x86_avx2_pmadd_ub_sw
                                       : llvm::Intrinsic::x86_ssse3_pmadd_ub_sw_128;
  auto* const type = llvm::FixedVectorType::get(b.getInt8Ty(), static_cast<unsigned>(bits / 8));
  return b.CreateIntrinsic(intrinsic, {}, {b.CreateBitCast(codes, type), b.CreateBitCast(bytes, type)});
}

}  // namespace

llvm::Value* targets::add_products_of_bytes(llvm::IRBuilder<>& b, const Instructions& instructions, llvm::Value* sum,
                                            llvm::Value* codes, llvm::Value* bytes, bool are_small) {
  const uint64_t bits = sum->getType()->getPrimitiveSizeInBits();
  if (bits != 128 && bits != 256 && bits != 512) return nullptr;
  if (instructions.multiplies_bytes) {
    const auto intrinsic = bits == 512   ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                           : bits == 256 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                         : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
    return b.CreateIntrinsic(intrinsic, {}, {sum, codes, bytes});
  }
  if (!are_small) return nullptr;
  llvm::Value* const pairs = b.CreateBitCast(sums_of_byte_pairs(b, codes, bytes), sum->getType());
  return add_products_of_pairs(b, sum, pairs, llvm::ConstantInt::get(sum->getType(), 0x00010001));
}

llvm::Value* targets::add_pairs_of_bytes(llvm::IRBuilder<>& b, const Instructions& instructions, llvm::Value* sums,
                                         llvm::Value* codes, llvm::Value* bytes) {
  const uint64_t bits = sums->getType()->getPrimitiveSizeInBits();
  if (instructions.multiplies_bytes || (bits != 128 && bits != 256 && bits != 512)) return nullptr;
  llvm::Value* const pairs = sums_of_byte_pairs(b, codes, bytes);
  return b.CreateBitCast(b.CreateAdd(b.CreateBitCast(sums, pairs->getType()), pairs), sums->getType());
}

constinit const Architecture targets::x86_64{.name = "x86-64",
                                             .triple_elsewhere = "x86_64-unknown-linux-gnu",
                                             .plain_cpu = "x86-64",
                                             .tests_masks_as_bits = true,
                                             .rounds_s64_once = true,
                                             .hooks = &kHooks};

#if defined(__x86_64__)

const Architecture& host_architecture() { return targets::x86_64; }

// Queried once per process: on a virtual machine each `cpuid` traps into the hypervisor, and a description needs about
// twenty.
const HostProcessor& host_processor() {
  static const HostProcessor host = [] {
    HostProcessor processor{.name = llvm::sys::getHostCPUName().str()};
    for (const auto& feature : llvm::sys::getHostCPUFeatures()) processor.features[feature.first().str()] = feature.second;
    // Of Intel's since Sapphire Rapids, the first of them that compute in f16 (docs/decisions/0080-slow-pairs-of-bf16.md).
    processor.has_slow_bf16_pairs = __builtin_cpu_is("intel") && processor.features["avx512fp16"];
    return processor;
  }();
  return host;
}

#endif

}  // namespace lamina::cpu
