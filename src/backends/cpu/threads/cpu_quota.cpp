#include "backends/cpu/threads/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

namespace lamina::cpu {

namespace {

namespace fs = std::filesystem;

// Microseconds of a period: version 2 has both in one file, "max" for no limit; version 1 has a file each, -1 for no limit.
std::optional<double> quota_of(const fs::path& group) {
  double quota = 0, period = 0;
  std::ifstream both(group / "cpu.max"), first(group / "cpu.cfs_quota_us"), second(group / "cpu.cfs_period_us");
  if (!(both >> quota >> period) && !(first >> quota && second >> period)) return std::nullopt;
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// Of a group and those above it. In a container a group's path may be that of the world outside: its own is then the mount.
std::optional<double> tightest(const fs::path& mount, const fs::path& group) {
  std::optional<double> least;
  for (fs::path each = group.relative_path();; each = each.parent_path()) {
    const std::optional<double> quota = quota_of(mount / each);
    if (quota) least = std::min(*quota, least.value_or(*quota));
    if (each.empty()) return least;
  }
}

}  // namespace

std::optional<int> cpu_quota(const fs::path& root, std::istream& groups) {
  std::optional<double> least;
  for (std::string line; std::getline(groups, line);) {
    std::istringstream fields(line);  // number:controllers:path
    std::string number, controllers, path;
    if (!std::getline(fields, number, ':') || !std::getline(fields, controllers, ':') || !std::getline(fields, path)) continue;
    if (!controllers.empty() && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::optional<double> quota = tightest(controllers.empty() ? root : root / controllers, path);
    if (quota) least = std::min(*quota, least.value_or(*quota));
  }
  if (!least) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(std::min(*least, 1e6))));
}

}  // namespace lamina::cpu
