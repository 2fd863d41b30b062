// Outputs that are written past the caches, and how a row's walk aligns to their lines.
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

// Whether two vectors of `lanes` values are rounded together to one vector of 16-bit elements.
bool rounds_in_pairs(DataType dtype, int lanes, const Instructions& instructions);

// Whether two of `rows` rows that follow each other begin at the same offset of a page.
bool begin_alike(const kernel::Kernel& kernel, const kernel::Arg& arg, int rows);

// The number of stores that send incomplete lines of the streamed arg to memory, for each of its lines; 0: it is written whole.
// A core completes a line only if it does not store to the same offset of another page in between. The rows of a loop do,
// in turns, if they begin at the same offset and a vector is less than a line.
int stores_of_parts(const kernel::Kernel& kernel, const kernel::Arg& arg, const Schedule& schedule, const Machine& machine);

// Whether the vectors of the arg that are stored are as wide as a line and its rows begin within lines, so that each store
// writes parts of two lines. A core joins the parts of a line if the stores follow each other, but not if the rows of a loop
// store in turns.
bool splits_lines_in_turns(const kernel::Kernel& kernel, const kernel::Arg& arg, const Schedule& schedule);

}  // namespace lamina::cpu
