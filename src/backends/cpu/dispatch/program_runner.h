// Runs a compiled plan: its steps in order, with the caller's memory and one block of scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/dispatch/kernel_dispatch.h"
#include "backends/cpu/dispatch/packed_constants.h"
#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/program/plan_program.h"
#include "backends/cpu/threads/executor.h"

namespace lamina::cpu {

class TileDispatch;

class ProgramRunner {
 public:
  using Runner = std::variant<std::shared_ptr<const KernelDispatch>, std::unique_ptr<const Primitive>,
                              std::unique_ptr<const TileDispatch>>;
  struct Step {
    Runner runner;
    std::vector<kernel::Binding> args;
    int constant = -1;                     // of a library step: the index of its weights among those that are packed once
    std::vector<IndexCheck> indices = {};  // of a kernel: checked or sorted before it runs
    bool is_followed = false;              // the next step is a kernel that runs on the parts of this one's result
    // Of a kernel: it runs only before these weights are packed from its result. Empty: it runs in every execution.
    std::vector<size_t> only_for = {};
  };
  ProgramRunner(ProgramMemory memory, std::vector<Step> steps);
  ~ProgramRunner();
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;

  // `scratch`: scratch_bytes() bytes, 64-byte aligned. `constants` has constant_count() entries, or is null if that is 0.
  // Appends the times of the steps to `times`, unless it is null. A kernel that runs on parts of a step has its share of the
  // time, after that of the step.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, char* scratch, const Executor& executor,
           PackedConstants* constants, std::vector<StepTime>* times = nullptr) const;
  size_t constant_count() const { return memory_.constants.size(); }  // number of weights that are packed once
  size_t scratch_bytes() const { return memory_.step_bytes + memory_.arena_bytes; }

  const ProgramMemory& memory() const { return memory_; }
  const std::vector<Step>& steps() const { return steps_; }
  const Primitive* primitive(size_t step) const;  // of a library step

 private:
  void run_step(const Step& step, std::span<const void* const> inputs, std::span<void* const> outputs, char* scratch,
                const Executor& executor, PackedConstants* constants) const;
  using PartEnded = std::function<void(const ResultPart&)>;
  void run_primitive(const Step& step, std::span<void* const> args, char* scratch, const Executor& executor,
                     PackedConstants* constants, const PartEnded& ended) const;
  void run_followed(const Step& step, const Step& kernel, std::span<const void* const> inputs, std::span<void* const> outputs,
                    char* scratch, const Executor& executor, PackedConstants* constants, int64_t* of_kernel) const;
  void* pointer_of(const kernel::Binding& binding, std::span<const void* const> inputs, std::span<void* const> outputs,
                   char* scratch) const;

  const ProgramMemory memory_;
  std::vector<int32_t> positions_;  // 0, 1, 2, ...
  const std::vector<Step> steps_;
};

}  // namespace lamina::cpu
