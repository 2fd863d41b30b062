// Compiles a kernel for its execution (dispatch/kernel_dispatch.h): chooses its schedule, and compiles its code.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/code/jit.h"
#include "backends/cpu/dispatch/kernel_dispatch.h"
#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/schedule/schedule.h"
#include "backends/cpu/threads/executor.h"
#include "backends/tune/tuned_schedules.h"
#include "handles/locks.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

class KernelRunner {
 public:
  // Compiles for `machine`, or gets the code from the cache. Code that this machine cannot run is compiled too. Uses the
  // schedule that tuning has found for it here (backends/tune/tuned_schedules.h), else the default of schedule/.
  KernelRunner(kernel::Kernel kernel, const Machine& machine) : KernelRunner(std::move(kernel), machine, machine.cores) {}
  // The same, run by at most `threads` threads.
  KernelRunner(kernel::Kernel kernel, const Machine& machine, int threads)
      : KernelRunner(std::move(kernel), machine, threads, nullptr, true) {}
  static KernelRunner by_rules(kernel::Kernel kernel, const Machine& machine) {
    return {std::move(kernel), machine, machine.cores, nullptr, false};
  }
  // Uses the given schedule, which must be legal for the kernel after with_rows_arranged. If it splits rows, it does so with
  // any number of threads above one.
  KernelRunner(kernel::Kernel kernel, const Machine& machine, const Schedule& schedule)
      : KernelRunner(std::move(kernel), machine, machine.cores, &schedule, false) {}

  // See KernelDispatch. Allocates only to compile further codes: one without streaming, for the first tensors whose alignment
  // does not allow it; others for their first trial (dispatch/access_choice.h); and one that shares each row among threads, for
  // the first number of threads that needs it. Schedules of whole rows are chosen before, because all share their memory.
  void run(std::span<void* const> pointers, void* scratch, const Executor& executor) const {
    dispatch_->run(pointers, scratch, executor);
  }
  size_t scratch_bytes() const { return dispatch_->scratch_bytes(); }
  const std::shared_ptr<const KernelDispatch>& dispatch() const { return dispatch_; }

  const kernel::Kernel& kernel() const { return code_->kernel; }  // with arranged rows
  const std::string& symbol() const { return code_->main().code.symbol; }
  bool from_cache() const { return code_->main().code.from_cache; }
  // The schedule with as many threads as the machine has cores, if the alignment allows it.
  Schedule schedule() const;
  // The same as text, with how it was chosen and the times of others.
  std::string choice() const;
  std::string loops() const;  // under this schedule: which walks compute what

 private:
  KernelRunner(kernel::Kernel kernel, const Machine& machine, int threads, const Schedule* given, bool takes_tuned);

  // The code of whole rows is compiled at the first use, and so is that of parts of rows.
  struct Variant {
    explicit Variant(Schedule of) : schedule(std::move(of)) {}

    Once compiled{LockRow::code_of_kernel}, split_compiled{LockRow::code_of_kernel};
    Schedule schedule;
    CompiledKernel code = {}, split = {};
  };
  struct Code final : KernelCode {
    Code(kernel::Kernel kernel, const Machine& machine, const Schedule* given, bool takes_tuned);
    KernelCode::Variant variant(size_t code, bool splits) const override;
    bool runs_here() const override { return is_for_host; }
    void write(ProgramWriter& to) const override;
    const KernelRunner::Variant& compiled(size_t code) const;
    const CompiledKernel& split(size_t code) const;
    const KernelRunner::Variant& main() const { return *codes.front(); }
    void add(Schedule schedule);

    Machine machine;
    bool is_for_host;
    kernel::Kernel kernel;
    std::optional<TunedSchedule<Schedule>> tuned;
    std::optional<Schedule> given;  // from measurements or from the caller; else the default
    // Those that calls choose by time, the first one first; and one without streaming, if these all stream.
    std::vector<std::unique_ptr<KernelRunner::Variant>> codes;
    size_t timed_codes;
  };
  static KernelProgram program_of(const Code& code, int threads);

  const Code* code_;  // owned by the dispatch
  std::shared_ptr<const KernelDispatch> dispatch_;
};

}  // namespace lamina::cpu
