// Running a compiled kernel on a device: grids, parameters, the variants of a program.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/gpu/device.h"
#include "kernels/kernel_ir.h"

namespace lamina::gpu {

class KernelRunner {
 public:
  KernelRunner(std::shared_ptr<Device> device, kernel::Kernel kernel);  // compiles, or takes the code from a cache

  // `buffers`: one per arg. `partials`: scratch_bytes() bytes.
  void run(void* stream, std::span<const BufferView> buffers, BufferView partials) const;

  size_t scratch_bytes() const;  // partial column sums, and the states of split rows
  const kernel::Kernel& kernel() const { return kernel_; }
  const Schedule& schedule() const { return schedule_; }
  const KernelSource& source() const { return source_; }
  bool from_cache() const { return from_cache_; }

 private:
  // Promises that the code of a variant relies on; see emit_c.h.
  struct Promises {
    bool aligned, disjoint;
  };
  Promises promises_of(std::span<const BufferView> buffers) const;
  std::shared_ptr<const Module> module_for(Promises promises) const;
  bool rows_are_aligned() const;
  int64_t column_blocks() const;
  size_t column_bytes() const;
  int64_t row_groups(bool by_column_block) const;
  void run_split(const Module& module, void* stream, std::span<const BufferView> views) const;

  std::shared_ptr<Device> device_;
  kernel::Kernel kernel_;
  Schedule schedule_;
  DeviceLimits limits_;
  int64_t rows_ = 0, row_size_ = 0, columns_ = 0;
  bool rows_aligned_ = false;
  std::vector<int64_t> words_;
  std::vector<int64_t> arg_bytes_;  // from an arg's first element to one past its last
  KernelSource source_;
  bool from_cache_ = false;
  mutable std::mutex mutex_;
  mutable std::array<std::shared_ptr<const Module>, 4> modules_;  // by promises; the usual one is there from the start
};

}  // namespace lamina::gpu
