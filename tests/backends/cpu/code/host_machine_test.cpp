// The host machine, described machines, and code for machines other than the host.
#include "backends/cpu/code/host_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/run/kernel_runner.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/kernels_of_rows.h"
#include "backends/cpu/targets/isa/target_hooks.h"
#include "interface/status.h"
#include "support/max_isa.h"

namespace lamina::testing {
namespace {

using cpu::Machine;
using ::testing::HasSubstr, ::testing::ThrowsMessage;

TEST(HostMachine, IsCappedByLaminaMaxIsa) {
  const Machine whole = cpu::host_machine();
  const MaxIsa cap("generic");
  const Machine capped = cpu::host_machine();
  EXPECT_EQ(capped.instructions, cpu::Instructions{.architecture = whole.instructions.architecture});
  EXPECT_EQ(capped.cpu, whole.instructions.architecture->plain_cpu);
  EXPECT_EQ(capped.caches, whole.caches);
  const MaxIsa wrong("sse9");
  EXPECT_THAT([] { cpu::host_machine(); }, ThrowsMessage<Error>(HasSubstr("\"sse9\", allowed on ")));
}

TEST(HostMachine, RunsItsOwnCodeAndPlainerCode) {
  for (const cpu::Target* const most : targets_here())
    EXPECT_TRUE(cpu::host_runs(cpu::capped(cpu::host_machine(), *most))) << most->name;
}

TEST(Machines, AreCappedAtWhatAllOfTheirTargetHave) {
  const Machine avx2 = cpu::capped(epyc().machine, cpu::targets::avx2);
  EXPECT_EQ(avx2.cpu, desktop().machine.cpu);
  EXPECT_EQ(avx2.instructions, desktop().machine.instructions);
  EXPECT_EQ(avx2.caches, epyc().machine.caches);
  EXPECT_EQ(cpu::capped(desktop().machine, cpu::targets::avx512), desktop().machine);
}

// A described machine has the features that LLVM knows for the processor of that name.
TEST(Machines, AreDescribedAsLlvmKnowsThem) {
  for (const auto& [name, machine] : machines_of_all_architectures()) {
    const cpu::Instructions& own = machine.instructions;
    if (!own.architecture->hooks->initialize()) continue;  // this build cannot generate code for it
    const std::string triple = cpu::triple_of(*own.architecture);
    std::string fault;
    const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, fault);
    ASSERT_NE(target, nullptr) << fault;
    const std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, machine.cpu, machine.features));
    ASSERT_TRUE(info->isCPUStringValid(machine.cpu)) << machine.cpu;
    const auto has_all = [&](const std::string& features) {
      llvm::SmallVector<llvm::StringRef, 4> names;
      llvm::StringRef(features).split(names, ',', -1, false);
      return std::all_of(names.begin(), names.end(),
                         [&](llvm::StringRef each) { return info->checkFeatures("+" + each.str()); });
    };
    for (const cpu::Target* const each : cpu::targets::of(*own.architecture)) {
      if (each == &cpu::targets::generic || own.target == &cpu::targets::generic) continue;
      EXPECT_EQ(has_all(each->needs), cpu::targets::contains(*own.target, *each)) << name << ", " << each->name;
    }
    EXPECT_EQ(own.rounds_to_bf16, *own->needs_for_bf16 != '\0' && has_all(own->needs_for_bf16)) << name;
    EXPECT_EQ(own.computes_in_f16, *own->needs_for_f16 != '\0' && has_all(own->needs_for_f16)) << name;
  }
}

class MachinesElsewhere : public ::testing::TestWithParam<DescribedMachine> {};

TEST_P(MachinesElsewhere, CodeIsMadeForAMachineThatTheHostIsNotButDoesNotRun) {
  const Machine& machine = GetParam().machine;
  if (cpu::host_runs(machine) || !machine.instructions.architecture->hooks->initialize()) GTEST_SKIP() << "it runs here";
  const kernel::Kernel kernel = layer_norm({2, 100});
  const cpu::KernelRunner runner(kernel, machine);
  EXPECT_NE(runner.symbol(), "");
  std::vector<std::vector<float>> memory(kernel.args.size(), std::vector<float>(200));
  std::vector<void*> pointers;
  for (auto& each : memory) pointers.push_back(each.data());
  EXPECT_THROW(runner.run(pointers, nullptr, cpu::Executor(1)), Error);
}

INSTANTIATE_TEST_SUITE_P(Machines, MachinesElsewhere,
                         ::testing::Values(DescribedMachine{"nowhere", machine_of_nowhere()}, neoverse_n1(), neoverse_v1(),
                                           a64fx(), epyc()),
                         name_of_machine);

// Caches and cores influence only the schedule, not the key of the code.
TEST(Machines, ShareCodeOnlyWithTheSameInstructions) {
  const kernel::Kernel kernel = layer_norm({2, 101});
  const cpu::KernelRunner first(kernel, epyc().machine), other(kernel, xeon().machine), plain_one(kernel, plain().machine);
  EXPECT_NE(first.symbol(), other.symbol());
  EXPECT_NE(first.symbol(), plain_one.symbol());
  Machine twin = epyc().machine;
  twin.caches.second *= 2;
  twin.cores = 1;
  const cpu::KernelRunner same(kernel, twin);
  EXPECT_EQ(first.symbol(), same.symbol());
  EXPECT_TRUE(same.from_cache());
}

}  // namespace
}  // namespace lamina::testing
