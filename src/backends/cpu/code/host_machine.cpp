#include "backends/cpu/code/host_machine.h"

#include <fcntl.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "backends/cpu/code/kept_costs.h"
#include "backends/cpu/code/llvm_headers.h"
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

// What a small file holds; "" where it cannot be read. A stream would cost a fresh process a tenth of a millisecond, most of it
// for a locale.
std::string text_of_file(const char* path) {
  std::array<char, 64> text;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t bytes = read(file, text.data(), text.size());
  close(file);
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0))};
}

// Of the last-level cache the C library tells the sum over a socket, Linux what one core reaches: the lesser is taken.
int64_t last_cache() {
  int64_t bytes = std::max<long>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0), kilobytes = 0;
  const std::string text = text_of_file("/sys/devices/system/cpu/cpu0/cache/index3/size");  // 32768K
  const auto [unit, error] = std::from_chars(text.data(), text.data() + text.size(), kilobytes);
  const bool is_read = error == std::errc{} && unit != text.data() + text.size() && *unit == 'K' && kilobytes > 0;
  return is_read && (bytes == 0 || kilobytes << 10 < bytes) ? kilobytes << 10 : bytes;
}

Caches host_caches() {
  Caches caches;
  if (const long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0) caches.first = bytes;
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) caches.second = bytes;
  caches.last = last_cache();
  return caches;
}

// On AVX-512 the processor's own name is used, so that the code is scheduled for it. It is asked once in a process: each
// `cpuid` is a trap into the hypervisor on a virtual machine, and a description takes about twenty.
const Machine& whole_host() {
  static const Machine machine = [] {
    std::string features;
    for (const auto& feature : host_features()) {
      features += (features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") + feature.first().str();
    }
    const TargetFeatures flags{.sse41 = true,
                               .f16c = true,
                               .avx512 = true,
                               .avx512_bf16 = host_features().lookup("avx512bf16"),
                               .avx512_fp16 = host_features().lookup("avx512fp16")};
    return capped({.isa = Isa::avx512,
                   .cpu = llvm::sys::getHostCPUName().str(),
                   .features = features,
                   .flags = flags,
                   .caches = host_caches(),
                   .cores = 1},
                  host_isa());
  }();
  return machine;
}

Isa isa_cap() {
  const char* const cap = std::getenv("LAMINA_MAX_ISA");
  const std::string name = cap == nullptr || *cap == '\0' ? "avx512" : cap;
  if (name == "generic") return Isa::generic;
  if (name == "avx2") return Isa::avx2;
  if (name == "avx512") return Isa::avx512;
  throw Error(Status::invalid_arguments, join("LAMINA_MAX_ISA is \"", name, "\", allowed is generic, avx2 or avx512"));
}

// What LLVM knows of a processor by its name.
bool lacks_nothing_of(const Machine& machine) {
  llvm::InitializeNativeTarget();
  std::string fault;
  const std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, fault);
  if (target == nullptr) return false;
  const std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, machine.cpu, machine.features));
  if (info == nullptr || !info->isCPUStringValid(machine.cpu)) return false;
  // Features that the host does not speak of are how to schedule code, not what it may hold.
  const auto enabled = info->getEnabledProcessorFeatures();
  return std::all_of(enabled.begin(), enabled.end(), [](const llvm::SubtargetFeatureKV& feature) {
    const auto found = host_features().find(feature.Key);
    return found == host_features().end() || found->second;
  });
}

}  // namespace

Machine host_machine() {
  Machine machine = capped(whole_host(), isa_cap());
  machine.cores = omp_get_max_threads();
  machine.costs = kept_costs::find(machine).value_or(Costs{});
  return machine;
}

bool host_runs(const Machine& machine) {
  if (machine.isa > host_isa()) return false;
  const Machine own = capped(whole_host(), machine.isa);
  return (machine.cpu == own.cpu && machine.features == own.features) || lacks_nothing_of(machine);
}

}  // namespace lamina::cpu
