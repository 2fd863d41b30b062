// Runs a compiled kernel: threads take chunks of rows, and column sums are combined in a fixed tree. Its choices do not
// affect the bits of results.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/code/jit.h"
#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/schedule/schedule.h"
#include "backends/cpu/schedule/sharing.h"
#include "backends/cpu/threads/executor.h"
#include "backends/tune/tuned_schedules.h"
#include "handles/locks.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

class KernelRunner {
 public:
  // Compiles for `machine`, or gets the code from the cache. Code that this machine cannot run is compiled too. Uses the
  // schedule that tuning has found for it here (backends/tune/tuned_schedules.h), else the default of schedule/.
  KernelRunner(kernel::Kernel kernel, const Machine& machine) : KernelRunner(std::move(kernel), machine, nullptr, true) {}
  static KernelRunner by_rules(kernel::Kernel kernel, const Machine& machine) {
    return {std::move(kernel), machine, nullptr, false};
  }
  // Uses the given schedule, which must be legal for the kernel after with_rows_arranged. If it splits rows, it does so with
  // any number of threads above one.
  KernelRunner(kernel::Kernel kernel, const Machine& machine, const Schedule& schedule)
      : KernelRunner(std::move(kernel), machine, &schedule, false) {}

  // `pointers`: one per arg. `scratch`: scratch_bytes() bytes, 64-byte aligned. Runs on threads of `executor`, or only on the
  // calling thread if there is little work. Allocates only to compile further variants: one that stores through the caches,
  // for the first tensors whose alignment does not allow streaming; and one that shares each row among threads, for the first
  // number of threads that needs it. Throws Error(runtime_error) if the kernel is compiled for another machine.
  void run(std::span<void* const> pointers, void* scratch, const Executor& executor) const;

  // Whether rows and columns of the kernel can run one by one, on the caller's choice of threads: `Parts` is such a run.
  bool has_parts() const;
  class Parts;

  size_t scratch_bytes() const;                             // partial column sums, and the rows' states if a row may be split
  const kernel::Kernel& kernel() const { return kernel_; }  // with arranged rows
  const std::string& symbol() const { return code_.cached.symbol; }
  bool from_cache() const { return code_.cached.from_cache; }
  // The schedule with as many threads as the machine has cores, if the alignment allows it.
  Schedule schedule() const;
  // The same as text, with how it was chosen and the times of others.
  std::string choice() const;
  std::string loops() const;  // under this schedule: which walks compute what

 private:
  KernelRunner(kernel::Kernel kernel, const Machine& machine, const Schedule* given, bool takes_tuned);
  struct Column {
    int arg;
    DataType dtype;
  };
  struct SplitCode {
    Once compiled{LockRow::code_of_kernel};
    CompiledKernel kernel;
  };
  struct Code {
    Schedule schedule;
    CompiledKernel cached;
    bool non_temporal = false;
    std::unique_ptr<SplitCode> split;
  };
  Code compile(bool may_stream) const;
  std::vector<bool> splits_that_gain() const;
  KernelFunction split_function(const Code& code) const;
  struct PlainCode {
    Once compiled{LockRow::code_of_kernel};
    Code code;
  };
  bool shares_an_input(size_t output, std::span<void* const> pointers) const;
  bool suits(std::span<void* const> pointers) const;
  const Code& plain_code() const;
  void run(const Code& code, const int64_t* call, void* scratch, const Executor& executor) const;
  static constexpr size_t kInlineWords = 256;  // descriptions of calls up to this size need no allocation
  void run_rows(const Code& code, const int64_t* call, void* scratch, const Executor& executor) const;
  bool wants_split(int threads) const {
    if (given_) return splits_ && threads > 1 && rows_ > 0;
    return splits_ && gains_by_split_[static_cast<size_t>(std::min(threads, std::max(machine_.cores, 1)))];
  }
  void run_split(const Code& code, const int64_t* call, void* scratch, const Executor& executor) const;
  struct Group;
  struct Portion;
  struct SplitWork;
  Group group_of(int64_t index, int64_t rows_at_a_time) const;
  void run_split_stage(const SplitWork& work, Portion portion, const Group& group, int64_t stage) const;
  void run_column_blocks(const Code& code, const int64_t* call, void* scratch, const Executor& executor) const;
  int64_t columns_of_chunk(int threads) const;
  void combine_partials(const void* partials, const int64_t* call, int64_t begin, int64_t end) const;
  template <typename T>
  void combine_columns(const T* partials, const int64_t* call, int64_t begin, int64_t end) const;
  int64_t column_blocks() const;
  size_t partial_bytes() const;  // of one block of rows
  size_t column_bytes() const;

  Machine machine_;
  bool runs_here_;
  kernel::Kernel kernel_;
  std::optional<TunedSchedule<Schedule>> tuned_;
  std::optional<Schedule> given_;     // from measurements or from the caller; else the default
  Code code_;                         // streams if outputs are large
  std::vector<bool> gains_by_split_;  // per number of threads, up to the machine's cores
  bool splits_, is_worth_threads_;
  RowSharing sharing_;
  std::unique_ptr<PlainCode> plain_ =
      std::make_unique<PlainCode>();  // compiled at the first use, for memory that does not allow streaming
  std::vector<int64_t> call_;         // pointers (filled in by run), outer extents, outer strides in bytes
  std::vector<Column> columns_;       // in the order of the column_sum nodes
  int64_t rows_ = 0, row_size_ = 0, moved_bytes_ = 0;
  int64_t split_steps_ = 0;
  int64_t paired_stages_ = 0;  // the first stages of a group: two steps each, because a thread combines what it has walked
  int64_t state_bytes_ = 0;    // per row that is split
  bool wide_ = false;          // partial sums are f64
  bool one_thread_ = false;    // rows of an output share bytes
};

// A run of a kernel that has parts. Threads may run different parts at the same time.
class KernelRunner::Parts {
 public:
  Parts(const KernelRunner& runner, std::span<void* const> pointers);
  // Part of the kernel's elements as a matrix: its elements in their order, with this number of columns.
  void run(int64_t columns, int64_t first_row, int64_t rows, int64_t first_column, int64_t columns_of_part) const;

 private:
  void run_elements(int64_t begin, int64_t end) const;

  KernelFunction function_;
  int64_t row_size_;
  std::array<int64_t, kInlineWords> call_;
};

}  // namespace lamina::cpu
