#include "machine.h"

#include <omp.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "caches.h"
#include "contenders.h"
#include "roofline/roofline_moves.h"

namespace bench {

namespace {

// The text after the colon of the first line that starts with `key`; "unknown" if there is none.
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// Linux reports a name on x86-64. On AArch64 it reports Arm's numbers of implementers and parts: 0x41 is Arm, and its part
// 0xd40 is a Neoverse V1.
std::string cpu_name() {
  const std::string name = cpuinfo("model name");
  return name != "unknown" ? name : "implementer " + cpuinfo("CPU implementer") + ", part " + cpuinfo("CPU part");
}

std::string cpu_model() {
  const std::string family = cpuinfo("cpu family");
  return family != "unknown" ? family + "/" + cpuinfo("model\t") + "/" + cpuinfo("stepping")
                             : cpuinfo("CPU architecture") + "/" + cpuinfo("CPU variant") + "/" + cpuinfo("CPU revision");
}

std::string line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? line : "unknown";
}

nlohmann::ordered_json describe_caches() {
  nlohmann::ordered_json latencies;
  for (const LatencyStep& step : measured_latencies())
    latencies.push_back({{"bytes", step.bytes}, {"ns_a_load", step.nanoseconds}});
  return {{"sysfs_last_level_bytes", told_by_sysfs().last},
          {"sysconf_last_level_bytes", told_by_sysconf().last},
          {"measured_last_level_bytes", size_by_latencies(measured_latencies())},
          {"latencies", latencies}};
}

}  // namespace

nlohmann::ordered_json describe_machine() {
  const CacheSizes sysfs = told_by_sysfs(), sizes = sysfs.last != 0 ? sysfs : told_by_sysconf();
  const char* const cap = std::getenv("LAMINA_MAX_ISA");
  return {{"cpu", cpu_name()},
          {"cpu_model", cpu_model()},
          {"vectors", widest_vectors()},
          {"isa_cap", cap == nullptr ? "" : cap},
          {"cpus", sysconf(_SC_NPROCESSORS_ONLN)},
          {"threads", omp_get_max_threads()},
          {"l1d_bytes", sizes.first_data},
          {"l2_bytes", sizes.second},
          {"last_level_cache_bytes", last_level_cache()},
          {"caches", describe_caches()},
          {"huge_pages", line_of("/sys/kernel/mm/transparent_hugepage/enabled")},
          {"compiler", std::string("g++ ") + __VERSION__},
          {"onednn", onednn_version()}};
}

bool is_busy_now(double& load) { return getloadavg(&load, 1) == 1 && load > 0.5; }

}  // namespace bench
