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

#include "backends/cpu/code/cached_costs.h"
#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/targets/isa/target_hooks.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// Whether this processor has all of `features`, a comma-separated list.
bool has_all(llvm::StringRef features) {
  llvm::SmallVector<llvm::StringRef, 4> names;
  features.split(names, ',', -1, /*KeepEmpty=*/false);
  const auto& known = host_processor().features;
  return std::all_of(names.begin(), names.end(), [&](llvm::StringRef name) {
    const auto found = known.find(name.str());
    return found != known.end() && found->second;
  });
}

const Target& host_target() {
  static const Target* const best = [] {
    const Target* found = &targets::generic;
    for (const Target* each : targets::of(host_architecture())) {
      if (has_all(each->needs)) found = each;
    }
    return found;
  }();
  return *best;
}

// The content of a small file; "" if it cannot be read. A stream would cost a new process a tenth of a millisecond, mostly
// for a locale.
std::string text_of_file(const char* path) {
  std::array<char, 64> text;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t bytes = read(file, text.data(), text.size());
  close(file);
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0))};
}

// The size that Linux reports for the data cache that one core reaches at this level; 0 if none.
int64_t linux_cache(int level) {
  for (const char index : {'3', '2', '1', '0'}) {
    const std::string folder = std::string("/sys/devices/system/cpu/cpu0/cache/index") + index;
    const std::string level_text = text_of_file((folder + "/level").c_str());
    if (level_text.empty() || level_text[0] - '0' != level ||
        text_of_file((folder + "/type").c_str()).starts_with("Instruction"))
      continue;
    int64_t kilobytes = 0;
    const std::string text = text_of_file((folder + "/size").c_str());  // 32768K
    const auto [unit, error] = std::from_chars(text.data(), text.data() + text.size(), kilobytes);
    const bool is_read = error == std::errc{} && unit != text.data() + text.size() && *unit == 'K' && kilobytes > 0;
    return is_read ? kilobytes << 10 : 0;
  }
  return 0;
}

// For the last-level cache, the C library reports the sum over a socket, and Linux the part that one core reaches; the
// smaller one is used. For other levels both report the same, but on some machines the C library reports nothing.
Caches host_caches() {
  const auto either = [](int64_t told, int level) { return told > 0 ? told : linux_cache(level); };
  const int64_t first = either(sysconf(_SC_LEVEL1_DCACHE_SIZE), 1), second = either(sysconf(_SC_LEVEL2_CACHE_SIZE), 2),
                last = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0), reached = linux_cache(3);
  Caches caches;
  if (first > 0) caches.first = first;
  if (second > 0) caches.second = second;
  caches.last = last == 0 || (reached > 0 && reached < last) ? reached : last;
  return caches;
}

// The host's features in the format of LLVM's option: "+one,-another".
std::string host_features() {
  std::string features;
  for (const auto& [name, has] : host_processor().features)
    features += (features.empty() ? "" : ",") + ((has ? "+" : "-") + name);
  return features;
}

const Machine& whole_host() {
  static const Machine machine = [] {
    const Target& target = host_target();
    const Architecture& architecture = host_architecture();
    Machine host{.instructions = {.architecture = &architecture, .target = &target}, .caches = host_caches(), .cores = 1};
    if (!target.names_processor) {
      host.cpu = target.plain_cpu != nullptr ? target.plain_cpu : architecture.plain_cpu;
      return host;
    }
    if (target.vector_bits == 0) host.instructions.scalable_bits = host_processor().scalable_bits;
    host.instructions.rounds_to_bf16 = *target.needs_for_bf16 != '\0' && has_all(target.needs_for_bf16);
    host.instructions.multiplies_bf16_pairs = host.instructions.rounds_to_bf16 && !host_processor().has_slow_bf16_pairs;
    host.instructions.has_bf16_tiles = *target.needs_for_bf16_tiles != '\0' && has_all(target.needs_for_bf16_tiles);
    host.instructions.computes_in_f16 = *target.needs_for_f16 != '\0' && has_all(target.needs_for_f16);
    host.instructions.multiplies_bytes = *target.needs_for_bytes != '\0' && has_all(target.needs_for_bytes);
    host.cpu = host_processor().name;
    host.features = host_features();
    return host;
  }();
  return machine;
}

const Target& best_allowed() {
  const char* const cap = std::getenv("LAMINA_MAX_ISA");
  const auto all = targets::of(host_architecture());
  if (cap == nullptr || *cap == '\0') return *all.back();
  if (const Target* const found = targets::find(host_architecture(), cap)) return *found;
  std::string names;
  for (const Target* each : all) names += (names.empty() ? "" : each == all.back() ? " or " : ", ") + std::string(each->name);
  throw Error(Status::invalid_arguments,
              join("LAMINA_MAX_ISA is \"", cap, "\", allowed on ", host_architecture().name, " is ", names));
}

// Whether the host has all features that LLVM associates with the processor's name.
bool lacks_nothing_of(const Machine& machine) {
  const Architecture& architecture = *machine.instructions.architecture;
  std::string fault;
  const std::string triple = triple_of(architecture);
  if (!architecture.hooks->initialize()) return false;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, fault);
  if (target == nullptr) return false;
  const std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, machine.cpu, machine.features));
  if (info == nullptr || !info->isCPUStringValid(machine.cpu)) return false;
  // Features missing from the host's list only affect instruction scheduling.
  const auto enabled = info->getEnabledProcessorFeatures();
  return std::all_of(enabled.begin(), enabled.end(), [](const llvm::SubtargetFeatureKV& feature) {
    const auto found = host_processor().features.find(feature.Key);
    return found == host_processor().features.end() || found->second;
  });
}

}  // namespace

Machine host_machine() {
  Machine machine = capped(whole_host(), best_allowed());
  machine.cores = omp_get_max_threads();
  machine.costs = cached_costs::find(machine).value_or(Costs{});
  return machine;
}

bool host_runs(const Machine& machine) {
  if (machine.keeps_objects) return false;
  const Instructions& code = machine.instructions;
  if (code.architecture != &host_architecture() || !targets::contains(host_target(), *code.target)) return false;
  const Machine own = capped(whole_host(), *code.target);
  if (vector_bits(own) != vector_bits(machine)) return false;
  return (machine.cpu == own.cpu && machine.features == own.features) || lacks_nothing_of(machine);
}

}  // namespace lamina::cpu
