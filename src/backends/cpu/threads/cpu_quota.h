// The CPUs that a control group (a container) allows, which affinity does not show.
#pragma once

#include <istream>
#include <optional>
#include <string>

namespace lamina::cpu {

// The number of CPUs, rounded up, that the tightest of this process's groups and their ancestors allows. `root` is the mount
// of the groups (/sys/fs/cgroup), `groups` the content of /proc/self/cgroup. Nothing if there is no limit, or none that can
// be read.
std::optional<int> cpu_quota(const std::string& root, std::istream& groups);

}  // namespace lamina::cpu
