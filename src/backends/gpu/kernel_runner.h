// Runs a compiled kernel on a device: grids, parameters, the variants of a program.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/gpu/key_of_times.h"
#include "backends/gpu/step_runner.h"
#include "backends/tune/tuned_schedules.h"
#include "handles/locks.h"
#include "kernels/kernel_ir.h"

namespace lamina::gpu {

class KernelRunner final : public StepRunner {
 public:
  // Compiles, or gets the code from a cache. Uses the schedule that tuning has found for the kernel on the device, else the
  // default.
  KernelRunner(const std::shared_ptr<Device>& device, const kernel::Kernel& kernel)
      : KernelRunner(device, kernel, find_tuned<Schedule>(kernel, *device)) {}
  // Uses the given schedule, which must be legal for the kernel on the device.
  KernelRunner(std::shared_ptr<Device> device, kernel::Kernel kernel, const Schedule& schedule)
      : KernelRunner(std::move(device), std::move(kernel), std::nullopt, schedule) {}

  void run(void* stream, std::span<const BufferView> buffers, BufferView partials) const override;
  size_t scratch_bytes() const override;  // partial column sums, and the states of split rows
  const KernelSource& source() const override { return source_; }
  std::string schedule_name() const override;
  const Schedule& schedule() const { return schedule_; }
  std::string text() const override;
  bool from_cache() const override { return from_cache_; }

 private:
  using Tuned = std::optional<TunedSchedule<Schedule>>;
  KernelRunner(const std::shared_ptr<Device>& device, const kernel::Kernel& kernel, const Tuned& tuned);
  KernelRunner(std::shared_ptr<Device> device, kernel::Kernel kernel, Tuned tuned, const Schedule& schedule);
  // Assumptions on which the code of a variant relies; see emit/emit_kernel.h.
  struct Assumptions {
    bool aligned, disjoint;
  };
  Assumptions assumptions_of(std::span<const BufferView> buffers) const;
  std::shared_ptr<const Module> module_for(Assumptions assumptions) const;
  bool rows_are_aligned() const;
  int64_t column_blocks() const;
  int64_t blocks_of_entry() const;  // of column sums
  std::vector<int64_t> words_of_columns() const;
  size_t column_bytes() const;
  int64_t rows_of_team() const;
  int64_t row_groups(bool by_column_block) const;
  void run_split(const Module& module, void* stream, std::span<const BufferView> views) const;

  std::shared_ptr<Device> device_;
  kernel::Kernel kernel_;
  SumOrder order_;
  Tuned tuned_;
  Schedule schedule_;
  DeviceLimits limits_;
  int64_t rows_ = 0, row_size_ = 0, columns_ = 0;
  int64_t entries_ = 1;  // of column sums
  bool rows_aligned_ = false;
  std::vector<int64_t> column_words_, words_;
  std::vector<int64_t> arg_bytes_;  // from an arg's first element to one past its last
  KernelSource source_;
  bool from_cache_ = false;
  mutable Mutex mutex_{LockRow::gpu_kernel_runner};
  // indexed by assumptions; the usual variant is loaded at construction
  mutable std::array<std::shared_ptr<const Module>, 4> modules_;
};

}  // namespace lamina::gpu
