// Runs a MatMul of a plan by a generated program.
#pragma once

#include <memory>
#include <vector>

#include "backends/gpu/emit/emit_matmul.h"
#include "backends/gpu/step_runner.h"
#include "handles/locks.h"

namespace lamina::gpu {

class MatmulRunner final : public StepRunner {
 public:
  // `op`: its description, for reports.
  MatmulRunner(const std::shared_ptr<Device>& device, kernel::MatmulStack stack, const std::string& op);

  void prepare() override { module(); }  // compiles, or gets the code from a cache
  void run(void* stream, std::span<const BufferView> buffers, BufferView partials) const override;
  size_t scratch_bytes() const override { return 0; }
  const KernelSource& source() const override { return source_; }
  std::string schedule_name() const override;
  std::string text() const override { return text_; }
  bool from_cache() const override { return loaded_.from_cache; }

 private:
  const Module& module() const;

  std::shared_ptr<Device> device_;
  kernel::MatmulStack stack_;
  MatmulForm form_;
  std::vector<int64_t> words_;
  int64_t groups_ = 0;
  KernelSource source_;
  mutable Once loads_{LockRow::gpu_kernel_runner};
  mutable LoadedModule loaded_;
  std::string text_;
};

}  // namespace lamina::gpu
