// An estimate of the registers that a kernel needs per thread, counted in the loop plan. The compiler allocates registers, but
// it has to be told beforehand how many threads share those of a multiprocessor, and spills what does not fit.
#pragma once

#include "backends/gpu/schedule/schedule.h"

namespace lamina::gpu {

// The 32-bit registers of a value.
int words_of(kernel::Type type);

// The 32-bit registers of a thread in the walk that needs most: values that stay live between walks and rows, the loads,
// accumulators and results of one chunk, addresses and row values.
int registers_of(const kernel::LoopPlan& plan, const SumOrder& order, const Schedule& schedule);

// The threads of a multiprocessor that have this number of registers each, at most tuning::kThreadsOfFewRegisters.
int threads_with(int registers);

// Whether enough threads of the schedule have their registers on a multiprocessor.
bool fits_registers(const kernel::Kernel& kernel, const Schedule& schedule);

}  // namespace lamina::gpu
