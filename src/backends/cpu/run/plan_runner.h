// Compiles a plan for its execution (dispatch/program_runner.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/dispatch/program_runner.h"
#include "backends/cpu/library/primitive_library.h"
#include "backends/cpu/run/kernel_runner.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/plan.h"

namespace lamina::cpu {

// The context in which steps are compiled.
struct StepCompiler {
  const PrimitiveLibrary* library;  // null: no library steps
  const Machine& machine;
};

// How the plan of a tile differs from a separate plan.
struct TileUse {
  // A step's packed weights, or the weights themselves if it packs none.
  struct PackedInput {
    size_t input = 0;              // the additional input
    bool reads_them_once = false;  // no other tile reads them
  };
  std::map<uint64_t, PackedInput> packed_inputs;  // by the op of a library step
  const class PlanRunner* like = nullptr;         // uses the same packed weights as this runner
};

class PlanRunner {
 public:
  // `tile`: for the plan of a tiled step, whose steps run on one thread.
  PlanRunner(const kernel::Plan& plan, const StepCompiler& compiler, const TileUse* tile = nullptr);
  ~PlanRunner();
  PlanRunner(const PlanRunner&) = delete;
  PlanRunner& operator=(const PlanRunner&) = delete;

  const std::shared_ptr<const ProgramRunner>& program() const { return program_; }
  size_t scratch_bytes() const { return program_->scratch_bytes(); }
  size_t constant_bytes() const;                                       // of the weights that are packed once
  size_t step_of(uint64_t op) const { return library_steps_.at(op); }  // the library step of this op
  const Primitive* primitive(uint64_t op) const { return program_->primitive(step_of(op)); }

  // Describes each step, in order, for reports.
  struct StepText {
    std::string name, text;
    std::string schedule = "";  // of a kernel: how it runs, and how that was chosen
  };
  const std::vector<StepText>& texts() const { return texts_; }
  const std::vector<StepWork>& work() const { return work_; }  // of each step; a tiled step is one
  bool from_cache() const { return from_cache_; }

 private:
  // A block of the arena into which a kernel copies a constant, in another type or layout.
  struct ConstantBlock {
    size_t step;
    bool is_read_otherwise = false;  // than to pack weights
    std::vector<size_t> packed = {};
  };

  // A kernel after a library step, which that may compute, too; null: there is none. `moved`: the library step if it then
  // writes to other memory than its own.
  struct NextKernel {
    const kernel::KernelStep* step = nullptr;
    std::optional<kernel::LibraryStep> moved = std::nullopt;
  };
  static NextKernel next_kernel(const kernel::Plan& plan, size_t step);
  // Returns whether the step computes the next kernel.
  bool add(const kernel::PlanStep& step, const StepCompiler& compiler, const TileUse* tile, const NextKernel& next);
  StepWork work_of(const kernel::PlanStep& step, size_t first_text) const;
  bool add_library_step(const kernel::LibraryStep& step, const StepCompiler& compiler, const TileUse* tile,
                        const NextKernel& next);
  void add_kernel(const kernel::KernelStep& step, const StepCompiler& compiler, int threads);
  void add_tiled_step(const kernel::TiledStep& step, const StepCompiler& compiler);
  bool is_constant(const kernel::Binding& binding) const;
  bool is_constant_or_copy(const kernel::Binding& binding) const;
  // Scales and zero points of the weights that the step dequantises.
  bool has_constant_operands_of_weights(const kernel::LibraryStep& step) const;
  int new_constant(const kernel::Binding& from, size_t bytes);    // returns its number
  ConstantBlock* constant_block(const kernel::Binding& binding);  // null: it is no such block
  void read_block(const kernel::Binding& binding);
  void end_block(const kernel::Binding& binding);
  bool may_follow(const kernel::KernelStep& step, const KernelRunner& runner) const;
  std::vector<bool> constant_inputs_;
  std::map<size_t, ConstantBlock> constant_blocks_;  // by offset in the arena; only during construction
  std::map<uint64_t, size_t> library_steps_;         // by op
  ProgramMemory memory_;                             // these two: only during construction
  std::vector<ProgramRunner::Step> steps_;
  std::shared_ptr<const ProgramRunner> program_;
  std::vector<StepText> texts_;
  std::vector<StepWork> work_;
  bool from_cache_ = true;
};

}  // namespace lamina::cpu
