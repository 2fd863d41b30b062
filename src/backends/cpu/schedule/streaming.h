// Outputs that are written past the caches, how a row's walk aligns to their lines, and when measured times decide.
#pragma once

#include <vector>

#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// The outputs that can be written past the caches, after the lanes are chosen. Kernels with four-bit args have none: a walk
// that follows an output's lines may start at any element, but four-bit args must start at an even one.
std::vector<int> streamable_args(const kernel::Kernel& kernel, const Schedule& schedule);

// Whether rows of the streamed args start at any position of a line. They are then stored as a stream, or their walks follow
// the lines.
bool begins_within_lines(const kernel::Kernel& kernel, const Schedule& schedule);

// Whether rows are contiguous, and of the compute type or, if they have at least a chunk of lanes, of 16 bits, of which a
// line has two vectors. For column sums, processing rows together is worth more.
bool leaves_as_stream(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine);

// Whether a call moves more than the cores' own caches hold, and not so much more than the last level that only memory counts.
// What other programs leave of these decides then which stores are faster.
bool stores_depend_on_others(const kernel::Kernel& kernel, const Machine& machine);

// The same machine while other programs fill its last-level cache.
Machine with_crowded_cache(Machine machine);

}  // namespace lamina::cpu
