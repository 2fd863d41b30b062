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

// The library of generated products, which every GPU has.
class GeneratedProducts final : public StepLibrary {
 public:
  // Without a device, it only answers what it offers.
  explicit GeneratedProducts(std::shared_ptr<Device> device = nullptr) : device_(std::move(device)) {}
  std::string why_unsupported(const Graph& graph, const Op& op) const override;
  std::unique_ptr<StepRunner> compile(const kernel::LibraryStep& step, const Use& use) const override;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace lamina::gpu
