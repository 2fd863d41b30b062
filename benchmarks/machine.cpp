#include "machine.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "contenders.h"

namespace bench {

namespace {

// The text after the colon of the first line that starts with `key`; "unknown" without one.
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? line : "unknown";
}

long cache_bytes(int level) { return std::max(0L, sysconf(level)); }

const char* widest_vectors() {
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  return __builtin_cpu_supports("avx2") ? "AVX2" : "SSE2";
}

}  // namespace

nlohmann::ordered_json describe_machine() {
  const char* const cap = std::getenv("LAMINA_MAX_ISA");
  return {{"cpu", cpuinfo("model name")},
          {"cpu_model", cpuinfo("cpu family") + "/" + cpuinfo("model\t") + "/" + cpuinfo("stepping")},
          {"vectors", widest_vectors()},
          {"isa_cap", cap == nullptr ? "" : cap},
          {"cpus", sysconf(_SC_NPROCESSORS_ONLN)},
          {"threads", omp_get_max_threads()},
          {"l1d_bytes", cache_bytes(_SC_LEVEL1_DCACHE_SIZE)},
          {"l2_bytes", cache_bytes(_SC_LEVEL2_CACHE_SIZE)},
          {"last_level_cache_bytes", last_level_cache()},
          {"huge_pages", line_of("/sys/kernel/mm/transparent_hugepage/enabled")},
          {"compiler", std::string("g++ ") + __VERSION__},
          {"onednn", onednn_version()}};
}

bool is_busy_now(double& load) { return getloadavg(&load, 1) == 1 && load > 0.5; }

}  // namespace bench
