// Times a kernel under different schedules, in its own memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/dispatch/host_block.h"
#include "backends/cpu/run/kernel_runner.h"
#include "backends/cpu/schedule/machine.h"
#include "backends/tune/schedule_search.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

class KernelTimer {
 public:
  // Allocates and fills memory for the kernel's args; threads of `machine` touch it first. Throws Error(out_of_memory).
  KernelTimer(const kernel::Kernel& kernel, const Machine& machine);

  // Microseconds per call: the minimum of several calls that take `milliseconds` together, but at least two. All calls use
  // the same memory, so data that fit the caches are in them.
  double time(const KernelRunner& runner, double milliseconds);

  // The medians of `rounds` such times in turns, so that disturbances affect both.
  TimePair time_in_turns(const KernelRunner& first, const KernelRunner& second, int rounds, double milliseconds);

 private:
  void run(const KernelRunner& runner);
  kernel::Kernel kernel_;
  Executor executor_;
  std::vector<std::unique_ptr<HostBlock>> args_;
  std::vector<void*> pointers_;
  std::unique_ptr<HostBlock> scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace lamina::cpu
