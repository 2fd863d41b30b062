// Costs of work on this machine, measured once (calibrate.h). They are cached in the process and, if there is a cache on
// disk, with the machine code (backends/cache/code_cache.h). The key is the machine, its number of cores and the version of
// the generator.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// Thread-safe. `machine.costs` is not read.
namespace cached_costs {

// Nothing if there is no entry or it is damaged. Reads the disk once per process.
std::optional<Costs> find(const Machine& machine);

// Replaces the previous entry.
void store(const Machine& machine, const Costs& costs);

// Clears the cache of the process, not that on disk. For tests.
void forget();

}  // namespace cached_costs

// What times depend on besides the kernel, for keys: the machine with its number of cores, and the code generator.
std::string key_of_times(const Machine& machine);

// The format on disk: one name and number per line.
std::string text_of(const Costs& costs);
std::optional<Costs> costs_of(std::string_view text);

}  // namespace lamina::cpu
