// Times of a kernel under one schedule or another, over memory of its own.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/host_block.h"
#include "backends/cpu/kernel_runner.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

class KernelTimer {
 public:
  // Makes and fills memory for the kernel's args, which threads of `machine` touch first. Throws Error(out_of_memory).
  KernelTimer(const kernel::Kernel& kernel, const Machine& machine);

  // Microseconds of a call, each the least of several in a row that take `milliseconds` together, or two where these take
  // longer. All calls are over the same memory: what fits the caches is there.
  double time(const KernelRunner& runner, double milliseconds);

  // The medians of `rounds` such times in turns, so that what disturbs the machine disturbs both.
  struct Pair {
    double first, second;
  };
  Pair time_in_turns(const KernelRunner& first, const KernelRunner& second, int rounds, double milliseconds);

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
