// What work takes on this machine, as it was measured here once (calibrate.h). Kept for the process and, where there is a cache
// on disk, beside the machine code (backends/cache/code_cache.h): under the machine, its cores and the version of the
// generator.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// Thread-safe. `machine.costs` is not looked at.
namespace cached_costs {

// Nothing where nothing is kept, or what is there is damaged. The disk is asked once in a process.
std::optional<Costs> find(const Machine& machine);

// In the place of what was kept before.
void store(const Machine& machine, const Costs& costs);

// What the process keeps in memory is forgotten; the disk is not. For tests.
void forget();

}  // namespace cached_costs

// What times depend on beside the kernel, for keys: the machine, its cores included, and what makes its code.
std::string key_of_times(const Machine& machine);

// As they lie on disk: a name and a number a line.
std::string text_of(const Costs& costs);
std::optional<Costs> costs_of(std::string_view text);

}  // namespace lamina::cpu
