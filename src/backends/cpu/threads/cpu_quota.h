// What a control group (a container) may have of the CPUs, which affinity does not say.
#pragma once

#include <istream>
#include <optional>
#include <string>

namespace lamina::cpu {

// CPUs, rounded up, that the tightest of this process's groups and those above them allows. `root` is where the groups are
// mounted (/sys/fs/cgroup), `groups` what /proc/self/cgroup says. Nothing: no limit, or none that can be read.
std::optional<int> cpu_quota(const std::string& root, std::istream& groups);

}  // namespace lamina::cpu
