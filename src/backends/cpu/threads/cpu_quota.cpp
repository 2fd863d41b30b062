#include "backends/cpu/threads/cpu_quota.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string>
#include <string_view>

#include "interface/status.h"

namespace lamina::cpu {

namespace {

// Paths are strings, because joining two std::filesystem::path objects without memory causes a double free (libstdc++ 12).

// Removes and returns the first number of the text; nothing if it does not start with one.
std::optional<double> take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Removes and returns the text up to the separator, and removes the separator.
std::string_view take_field(std::string_view& text, char separator) {
  const std::string_view field = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(field.size() + 1, text.size()));
  return field;
}

// CPUs per period. Version 2 has quota and period in one file, with "max" for no limit; version 1 has two files, with -1 for
// no limit.
std::optional<double> quota_of(const std::string& group) {
  const std::string both = first_line_of(group + "/cpu.max"), first = first_line_of(group + "/cpu.cfs_quota_us"),
                    second = first_line_of(group + "/cpu.cfs_period_us");
  std::string_view quota_text = both.empty() ? first : both;
  const std::optional<double> quota = take_number(quota_text);
  std::string_view period_text = both.empty() ? second : quota_text;
  const std::optional<double> period = take_number(period_text);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// The lowest quota of a group and its ancestors. In a container, a group's path may be that outside the container; its own
// files are then at the mount.
std::optional<double> tightest(const std::string& mount, std::string_view group) {
  std::optional<double> least;
  for (;;) {
    while (group.ends_with('/')) group.remove_suffix(1);
    const std::optional<double> quota = quota_of(join(mount, group.starts_with('/') ? "" : "/", group));
    if (quota) least = std::min(*quota, least.value_or(*quota));
    if (group.empty()) return least;
    group = group.substr(0, group.rfind('/') + 1);
  }
}

}  // namespace

std::optional<int> cpu_quota(const std::string& root, std::istream& groups) {
  std::optional<double> least;
  for (std::string line; std::getline(groups, line);) {
    std::string_view path = line;  // number:controllers:path
    if (std::count(line.begin(), line.end(), ':') < 2) continue;
    take_field(path, ':');
    const std::string controllers(take_field(path, ':'));
    if (!controllers.empty() && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::optional<double> quota = tightest(controllers.empty() ? root : root + "/" + controllers, path);
    if (quota) least = std::min(*quota, least.value_or(*quota));
  }
  if (!least) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(std::min(*least, 1e6))));
}

}  // namespace lamina::cpu
