#include "backends/cpu/code/target.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "interface/status.h"

namespace lamina::cpu {

namespace {

const llvm::StringMap<bool>& host_features() {
  static const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  return features;
}

Isa host_isa() {
  const auto has = [](const char* name) { return host_features().lookup(name); };
  static const Isa isa = has("avx512f") && has("avx512vl") && has("avx512dq") && has("avx512bw") ? Isa::avx512
                         : has("avx2") && has("fma") && has("f16c")                              ? Isa::avx2
                                                                                                 : Isa::generic;
  return isa;
}

Target this_machine() {
  std::string features;
  for (const auto& feature : host_features()) {
    features += (features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") + feature.first().str();
  }
  return {llvm::sys::getHostCPUName().str(),
          features,
          {.sse41 = true, .f16c = true, .avx512 = true, .avx512_bf16 = host_features().lookup("avx512bf16")}};
}

}  // namespace

Isa chosen_isa() {
  const char* const cap = std::getenv("LAMINA_MAX_ISA");
  if (cap == nullptr || *cap == '\0') return host_isa();
  const std::string name = cap;
  const bool known = name == "generic" || name == "avx2" || name == "avx512";
  if (!known)
    throw Error(Status::invalid_arguments, join("LAMINA_MAX_ISA is \"", name, "\", allowed is generic, avx2 or avx512"));
  const Isa wanted = name == "generic" ? Isa::generic : name == "avx2" ? Isa::avx2 : Isa::avx512;
  return std::min(wanted, host_isa());
}

int vector_bits(Isa isa) { return isa == Isa::avx512 ? 512 : isa == Isa::avx2 ? 256 : 128; }

const Target& target_of(Isa isa) {
  static const Target generic{"x86-64", "", {}};
  static const Target avx2{"x86-64-v3", "", {.sse41 = true, .f16c = true, .avx512 = false, .avx512_bf16 = false}};
  if (isa == Isa::generic) return generic;
  if (isa == Isa::avx2) return avx2;
  static const Target avx512 = this_machine();
  return avx512;
}

}  // namespace lamina::cpu
