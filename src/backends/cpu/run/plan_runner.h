// A compiled plan: its steps run in order, with the caller's memory and one block of scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/library/primitive_library.h"
#include "backends/cpu/run/kernel_runner.h"
#include "backends/cpu/run/packed_constants.h"
#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/threads/executor.h"
#include "kernels/plan.h"

namespace lamina::cpu {

class TiledRunner;

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

  // `scratch`: scratch_bytes() bytes, 64-byte aligned. `constants` has constant_count() entries, or is null if that is 0.
  // Appends the times of the steps to `times`, unless it is null.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, char* scratch, const Executor& executor,
           PackedConstants* constants, std::vector<StepTime>* times = nullptr) const;
  size_t constant_count() const { return constants_; }       // number of weights that are packed once
  size_t constant_bytes() const { return constant_bytes_; }  // their size

  size_t scratch_bytes() const { return step_bytes_ + arena_bytes_; }
  const Primitive* primitive(uint64_t op) const;  // the library step of this op

  // Describes each step, in order, for reports.
  struct StepText {
    std::string name, text;
    std::string schedule = "";  // of a kernel: how it runs, and how that was chosen
  };
  const std::vector<StepText>& texts() const { return texts_; }
  const std::vector<StepWork>& work() const { return work_; }  // of each step; a tiled step is one
  bool from_cache() const { return from_cache_; }

 private:
  using StepRunner = std::variant<KernelRunner, std::unique_ptr<const Primitive>, std::unique_ptr<const TiledRunner>>;
  struct Step {
    StepRunner runner;
    std::vector<kernel::Binding> args;
    int constant = -1;  // of a library step: the index of its weights among those that are packed once
    std::vector<kernel::StepIndices> indices = {};  // of a kernel: checked or sorted before it runs
    bool is_followed = false;                       // the next step is a kernel that runs on the parts of this one's result
    // Of a kernel: it runs only before these weights are packed from its result. Empty: it runs in every execution.
    std::vector<size_t> only_for = {};
  };
  // A block of the arena into which a kernel copies a constant, in another type or layout.
  struct ConstantBlock {
    size_t step;
    bool is_read_otherwise = false;  // than to pack weights
    std::vector<size_t> packed = {};
  };
  static constexpr size_t kInlineArgs = 64;

  void add(const kernel::PlanStep& step, const StepCompiler& compiler, const TileUse* tile);
  StepWork work_of(const kernel::PlanStep& step, size_t first_text) const;
  void add_library_step(const kernel::LibraryStep& step, const StepCompiler& compiler, const TileUse* tile);
  void add_kernel(const kernel::KernelStep& step, const StepCompiler& compiler);
  void add_tiled_step(const kernel::TiledStep& step, const StepCompiler& compiler);
  bool is_constant(const kernel::Binding& binding) const;
  bool is_constant_or_copy(const kernel::Binding& binding) const;
  int new_constant(const kernel::Binding& from, size_t bytes);    // returns its number
  ConstantBlock* constant_block(const kernel::Binding& binding);  // null: it is no such block
  void read_block(const kernel::Binding& binding);
  void end_block(const kernel::Binding& binding);
  void run_step(const Step& step, std::span<const void* const> inputs, std::span<void* const> outputs, char* scratch,
                const Executor& executor, PackedConstants* constants) const;
  using PartEnded = std::function<void(const ResultPart&)>;
  void run_primitive(const Step& step, std::span<void* const> args, char* scratch, const Executor& executor,
                     PackedConstants* constants, const PartEnded& ended) const;
  bool may_follow(const kernel::KernelStep& step, const KernelRunner& runner) const;
  void run_followed(const Step& step, const Step& kernel, std::span<const void* const> inputs, std::span<void* const> outputs,
                    char* scratch, const Executor& executor, PackedConstants* constants) const;
  void* pointer_of(const kernel::Binding& binding, std::span<const void* const> inputs, std::span<void* const> outputs,
                   char* scratch) const;

  std::vector<bool> constant_inputs_;
  size_t constants_ = 0, constant_bytes_ = 0;
  std::map<size_t, ConstantBlock> constant_blocks_;  // by offset in the arena; only during construction
  std::vector<Step> steps_;
  std::map<uint64_t, size_t> library_steps_;  // by op
  std::vector<std::vector<float>> tables_;
  std::vector<int32_t> positions_;  // 0, 1, 2, ...
  size_t step_bytes_ = 0;           // the largest scratch that a step needs
  size_t arena_bytes_ = 0;
  std::vector<StepText> texts_;
  std::vector<StepWork> work_;
  bool from_cache_ = true;
};

}  // namespace lamina::cpu
