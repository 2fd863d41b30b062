// This program compares the CPU's results with the interpreter of the kernel IR: the same bits except NaN payloads. The
// interpreter uses the source text that GPU programs contain, so this also compares that text with the CPU's mathematics.
#include "backends/cpu/support/cpu_check.h"
#include "compiler/compile.h"
#include "kernels/interpret.h"
#include "kernels/plan.h"

namespace lamina::testing {

namespace {

struct Memory {
  void* data;
  int64_t bytes;
};

void interpret_plan(const kernel::Plan& plan, const std::vector<Memory>& inputs, const std::vector<Memory>& outputs) {
  Buffer arena(plan.arena_bytes + 64);
  for (const kernel::PlanStep& each : plan.steps) {
    const auto& step = std::get<kernel::KernelStep>(each);
    std::vector<kernel::InterpretedArg> args;
    for (size_t a = 0; a < step.args.size(); ++a) {
      const auto& [source, index, bytes] = step.args[a];
      using Source = kernel::Binding::Source;
      if (source == Source::table) {
        args.push_back({});
        continue;
      }
      const Memory memory = source == Source::input ? inputs[index]
                            : source == Source::output
                                ? outputs[index]
                                : Memory{arena.data() + index, static_cast<int64_t>(plan.arena_bytes - index)};
      args.push_back(
          {static_cast<std::byte*>(memory.data) + bytes, (memory.bytes - bytes) * 8 / bits_of(step.kernel.args[a].dtype)});
    }
    for (const kernel::StepIndices& indices : step.indices)
      kernel::prepare(indices, args[indices.arg].data, indices.order ? args[indices.sorted].data : nullptr);
    kernel::interpret(step.kernel, args);
  }
}

bool same_bits(double a, double b) {
  return (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b));
}

}  // namespace

void compare_with_cpu(const CpuRun& run) {
  int64_t elements_in_all = 0;
  std::vector<Memory> inputs, outputs;
  for (size_t i = 0; i < run.ports.inputs.size(); ++i) {
    inputs.push_back({const_cast<std::byte*>(run.inputs[i]->data()), run.ports.inputs[i].byte_size()});
    elements_in_all += run.ports.inputs[i].element_count();
  }
  std::vector<Buffer> actual;
  for (const LogicalTensor& tensor : run.ports.outputs) {
    actual.push_back(buffer_for(tensor));
    outputs.push_back({actual.back().data(), tensor.byte_size()});
    elements_in_all += tensor.element_count();
  }
  if (elements_in_all > run.most_elements) return;
  const kernel::Plan plan = compiler::plan_subgraph(run.subgraph, {.name = "test", .alignment = 64, .sums_segments = true});
  ASSERT_NO_THROW(interpret_plan(plan, inputs, outputs));
  for (size_t o = 0; o < actual.size(); ++o) {
    const auto got = elements(run.ports.outputs[o], actual[o]), want = elements(run.ports.outputs[o], run.outputs[o]);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(same_bits(got[i], want[i]))
          << "output " << o << " element " << i << ": interpreter " << got[i] << ", cpu " << want[i] << "\n"
          << kernel::print(std::get<kernel::KernelStep>(plan.steps[0]).kernel);
    }
  }
}

}  // namespace lamina::testing
