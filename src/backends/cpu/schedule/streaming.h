// Outputs that are written past the caches, and how a row's walk meets their lines.
#pragma once

#include <vector>

#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// The outputs that can be written past the caches, once it is known what lanes are. Never with args of four bits: a walk that
// follows an output's lines begins at any element, theirs at an even one.
std::vector<int> streamable_args(const kernel::Kernel& kernel, const Schedule& schedule);

// Whether rows of the streamed args begin anywhere in a line: such leave as a stream, or their walks follow the lines.
bool begins_within_lines(const kernel::Kernel& kernel, const Schedule& schedule);

// Rows that end where the next one begins, of the type that is computed in or, if they have a chunk of lanes, of 16 bits: a
// line of these are two vectors. Column sums are worth more in rows side by side.
bool leaves_as_stream(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine);

}  // namespace lamina::cpu
