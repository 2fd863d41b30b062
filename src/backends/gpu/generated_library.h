// Runs library steps of a plan by generated programs.
#pragma once

#include <memory>
#include <vector>

#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/step_runner.h"
#include "handles/locks.h"

namespace lamina::gpu {

// The number of work-groups. Throws Error(invalid_shape) if a launch cannot have that many.
int64_t group_count(const Launch& launch);

class ProgramRunner final : public StepRunner {
 public:
  // Throws Error(unimplemented) if the device lacks what the program needs. `op`: its description, for reports.
  ProgramRunner(const std::shared_ptr<Device>& device, LibraryProgram program, const std::string& op);

  void prepare() override { module(); }  // compiles, or gets the code from a cache
  void run(void* stream, std::span<const BufferView> buffers, BufferView scratch) const override;
  size_t scratch_bytes() const override { return program_.scratch_bytes; }
  const KernelSource& source() const override { return program_.source; }
  std::string schedule_name() const override { return program_.schedule; }
  std::string text() const override { return program_.text; }
  bool from_cache() const override { return loaded_.from_cache; }

 private:
  const Module& module() const;

  std::shared_ptr<Device> device_;
  LibraryProgram program_;
  std::vector<int64_t> groups_;  // of each launch
  mutable Once loads_{LockRow::gpu_kernel_runner};
  mutable LoadedModule loaded_;
};

// The library of generated programs, which every GPU has.
class GeneratedLibrary final : public StepLibrary {
 public:
  // Without a device, it only answers what it offers.
  explicit GeneratedLibrary(std::shared_ptr<Device> device = nullptr) : device_(std::move(device)) {}
  std::string why_unsupported(const Graph& graph, const Op& op) const override;
  std::unique_ptr<StepRunner> compile(const kernel::LibraryStep& step, const Use& use) const override;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace lamina::gpu
