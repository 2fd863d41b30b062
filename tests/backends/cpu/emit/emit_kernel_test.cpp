// Properties of the emitted LLVM IR: equal keys mean equal code, and arrays on the stack are small.
#include "backends/cpu/emit/emit_kernel.h"

#include <gtest/gtest.h>

#include <map>

#include "backends/cpu/schedule/live_values.h"
#include "backends/cpu/schedule/loop_policy.h"
#include "backends/cpu/schedule/schedule.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/kernels_of_rows.h"

namespace lamina::testing {
namespace {

using kernel::Kernel;
using kernel::Reduction;
using kernel::Value;

struct Emitted {
  cpu::Schedule schedule;
  std::string key, text;     // key of the kernel and its schedule; text of the module
  int64_t live_bytes = 0;    // of values that stay live
  uint64_t stack_bytes = 0;  // of arrays on the stack
};

Emitted emit(const Kernel& unarranged, const cpu::Machine& machine = epyc().machine) {
  const Kernel kernel = cpu::with_rows_arranged(unarranged, machine);
  Emitted emitted;
  emitted.schedule = cpu::choose_schedule(kernel, machine, true);
  emitted.key = cpu::describe(emitted.schedule) + "\n" + kernel::print(kernel, false);
  emitted.live_bytes =
      cpu::live_values(kernel::LoopPlan(kernel, cpu::loop_policy(kernel, emitted.schedule)), emitted.schedule).bytes;
  llvm::LLVMContext context;
  llvm::Module module("module", context);
  cpu::emit_kernel(module, "function", kernel, emitted.schedule, machine.instructions);
  llvm::raw_string_ostream stream(emitted.text);
  module.print(stream, nullptr);
  for (const llvm::Instruction& instruction : module.getFunction("function")->getEntryBlock()) {
    const auto* const array = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
    if (array == nullptr || !array->getAllocatedType()->isArrayTy()) continue;
    emitted.stack_bytes += module.getDataLayout().getTypeAllocSize(array->getAllocatedType());
  }
  return emitted;
}

Kernel relu(const Shape& shape) {
  Rows k("relu", shape);
  k.out(max(k.src("src"), 0.0), "dst");
  return k.finish();
}

// The inner extent of an elementwise kernel is a run-time value: lengths with equal keys share one code. Data from memory is
// prefetched within the row; rows with gaps and a streamed output prefetch their own ends.
TEST(EmittedCode, OfElementwiseKernelsIsTheSameForOneKey) {
  for (const bool in_threes : {false, true}) {
    std::map<std::string, std::string> code_of_key;
    for (const int64_t size : {9'000, 10'001, 12'000, 200'000, 400'001}) {
      const Emitted emitted = emit(relu({2'000'000 / size + 1, size, DataType::f32, in_threes}));
      const auto [known, is_new] = code_of_key.try_emplace(emitted.key, emitted.text);
      EXPECT_TRUE(is_new || known->second == emitted.text) << size << "\n" << emitted.key;
    }
    if (!in_threes) continue;  // without gaps, all elements form one run
    EXPECT_LE(code_of_key.size(), 2u) << "five lengths choose little";
  }
}

// Each element has many expensive values that are used twice and stay live. Their memory is the call's, not the stack's.
TEST(EmittedCode, KeepsFewLiveValuesOnTheStack) {
  Rows k("many_powers", {640, 5});
  const Value x = k.src("src");
  std::vector<Value> powers;
  for (int i = 0; i < 80; ++i) powers.push_back(exp(x * (0.01 * (i + 1))));
  Value total = powers[0];
  for (size_t i = 1; i < powers.size(); ++i) total = total + powers[i];
  const Value sum = k.builder().reduce(Reduction::sum, total);
  Value weighted = powers[0] / sum;
  for (size_t i = 1; i < powers.size(); ++i) weighted = fma(weighted, sum, powers[i]);
  k.out(weighted, "dst");
  const Kernel kernel = k.finish();
  constexpr uint64_t kAccumulators = 32 << 10;
  for (const DescribedMachine& described : described_machines()) {
    const Emitted emitted = emit(kernel, described.machine);
    EXPECT_TRUE(emitted.schedule.transposed) << described.name;
    EXPECT_GT(emitted.live_bytes, int64_t{64} << 10) << described.name << " keeps little";
    EXPECT_LE(emitted.stack_bytes, kAccumulators) << described.name;
  }
}

}  // namespace
}  // namespace lamina::testing
