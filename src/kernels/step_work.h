// The work that the mathematics of a step asks for, with any schedule: the bytes that it must move and its arithmetic. Profiles
// compare the time of a step with the time that the machine needs for this work.
#pragma once

#include <cstdint>

#include "kernels/plan.h"

namespace lamina::kernel {

// The bytes that a step reads and writes in main memory, with each arg counted once.
int64_t moved_bytes(const PlanStep& step);

// The operations on numbers. A fused multiply-add counts as two; any other map that computes a number, an elementary function
// too, as one; a comparison, choice or conversion as none. A product's or convolution's are those of its sums, without skipping
// what padding leaves out.
double arithmetic_of(const PlanStep& step);

}  // namespace lamina::kernel
