// This program compares the CPU's results with a GPU's (PoCL suffices): the same bits without reductions, and the same number
// of kernels, plus one for each kernel that sums columns.
#include <algorithm>

#include "backends/gpu/gpu_check.h"
#include "compiler/compile.h"

namespace lamina::testing {

void compare_with_cpu(const CpuRun& run) {
  LAMINA_GPU_OR_SKIP(gpu);
  std::vector<Buffer> outputs = outputs_for(run.ports);
  const ExecutableInfo info = run_on_gpu(*gpu, run.subgraph, run.ports.inputs, run.inputs, outputs);
  const kernel::Plan plan = compiler::plan_subgraph(run.subgraph, {.name = "test", .alignment = 256});
  size_t kernels = 0;
  bool reduces = false;
  for (const kernel::PlanStep& each : plan.steps) {
    const auto& step = std::get<kernel::KernelStep>(each);
    kernels += step.kernel.has_column_sum() ? 2 : 1;
    reduces = reduces || step.kernel.has_row_reduction() || step.kernel.has_column_sum();
  }
  const bool split = std::any_of(info.schedules.begin(), info.schedules.end(),
                                 [](const std::string& name) { return name.starts_with("split"); });
  EXPECT_TRUE(split || info.kernels.size() == kernels) << info.kernels.size() << " kernels, expected " << kernels;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const LogicalTensor& tensor = run.ports.outputs[o];
    const auto got = elements(tensor, outputs[o]), want = elements(tensor, run.outputs[o]);
    for (size_t i = 0; i < got.size(); ++i) {
      const bool near = reduces && std::abs(got[i] - want[i]) <= 2 * allowed_error(tensor.dtype, want[i], run.factor);
      ASSERT_TRUE(near || same_value(got[i], want[i])) << "tensor " << tensor.id << " (" << describe(tensor) << ") element "
                                                       << i << ": gpu " << got[i] << ", cpu " << want[i] << "\n"
                                                       << info.kernel_texts.at(0);
    }
  }
}

}  // namespace lamina::testing
