// AArch64: the common part of its targets, and the description of the host processor if it is one.
#include "backends/cpu/targets/isa/target_hooks.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

namespace lamina::cpu {

namespace {

bool initialize() {
#if defined(LAMINA_LLVM_AARCH64)
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
  return true;
#else
  return false;
#endif
}

// With a known length, LLVM uses the long registers for vectors of that length and for shorter ones.
void mark(llvm::Function& function, const Instructions& instructions, int) {
  if (instructions.scalable_bits <= 128) return;
  const auto quarters = static_cast<unsigned>(instructions.scalable_bits / 128);
  function.addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(function.getContext(), quarters, quarters));
}

constexpr ArchitectureHooks kHooks{.initialize = initialize, .mark = mark};

}  // namespace

constinit const Architecture targets::aarch64{.name = "AArch64",
                                              .triple_elsewhere = "aarch64-unknown-linux-gnu",
                                              .plain_cpu = "generic",
                                              .tests_masks_as_bits = false,
                                              .rounds_s64_once = false,
                                              .hooks = &kHooks};

#if defined(__aarch64__)

const Architecture& host_architecture() { return targets::aarch64; }

namespace {

// The Linux hwcap bit of a feature, and LLVM's name for it.
struct Feature {
  const char* name;
  unsigned long word;
  int bit;
};
constexpr Feature kFeatures[] = {{"neon", AT_HWCAP, 1},   {"fullfp16", AT_HWCAP, 10}, {"dotprod", AT_HWCAP, 20},
                                 {"sve", AT_HWCAP, 22},   {"fp16fml", AT_HWCAP, 23},  {"sve2", AT_HWCAP2, 1},
                                 {"i8mm", AT_HWCAP2, 13}, {"bf16", AT_HWCAP2, 14}};

// In bits, for this thread and threads that it starts; 0 without such vectors.
int scalable_bits() {
  constexpr int kGetLength = 51, kLengthMask = 0xffff;  // PR_SVE_GET_VL, which older headers do not have; bytes
  const int answer = prctl(kGetLength);
  return answer < 0 ? 0 : 8 * (answer & kLengthMask);
}

}  // namespace

// The hwcap words are correct for each process. /proc/cpuinfo, which LLVM reads, describes another processor under emulation.
// So code is generated for the processor's features, not for its name.
const HostProcessor& host_processor() {
  static const HostProcessor host = [] {
    HostProcessor processor{.name = targets::aarch64.plain_cpu};
    for (const Feature& feature : kFeatures)
      processor.features[feature.name] = (getauxval(feature.word) >> feature.bit & 1) != 0;
    const int bits = processor.features.at("sve") ? scalable_bits() : 0;
    const bool is_known = bits == 128 || bits == 256 || bits == 512;  // there is no code generation for other lengths
    processor.features["sve"] = is_known;
    if (is_known) processor.scalable_bits = bits;
    return processor;
  }();
  return host;
}

#endif

}  // namespace lamina::cpu
