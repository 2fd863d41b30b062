// The machine at hand, described machines, and code for those that this one is not.
#include "backends/cpu/code/host_machine.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu/code/llvm_headers.h"
#include "backends/cpu/described_machines.h"
#include "backends/cpu/kernels_of_rows.h"
#include "backends/cpu/runtime.h"
#include "interface/status.h"

namespace lamina::testing {
namespace {

using cpu::Isa;
using cpu::Machine;

// LAMINA_MAX_ISA for as long as this lives.
class MaxIsa {
 public:
  explicit MaxIsa(const char* value) {
    if (const char* const before = std::getenv("LAMINA_MAX_ISA")) before_ = before;
    setenv("LAMINA_MAX_ISA", value, 1);
  }
  ~MaxIsa() { setenv("LAMINA_MAX_ISA", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST(HostMachine, IsCappedByLaminaMaxIsa) {
  const Machine whole = cpu::host_machine();
  const MaxIsa cap("generic");
  const Machine capped = cpu::host_machine();
  EXPECT_EQ(capped.isa, Isa::generic);
  EXPECT_EQ(capped.cpu, "x86-64");
  EXPECT_EQ(capped.flags, cpu::TargetFeatures{});
  EXPECT_EQ(capped.caches, whole.caches);
  const MaxIsa wrong("sse9");
  EXPECT_THROW(cpu::host_machine(), Error);
}

TEST(HostMachine, RunsItsOwnCodeAndPlainerCode) {
  for (const Isa most : {Isa::generic, Isa::avx2, Isa::avx512})
    EXPECT_TRUE(cpu::host_runs(cpu::capped(cpu::host_machine(), most))) << cpu::vector_bits(most);
}

TEST(Machines, AreCappedAtALevelOfX86) {
  const Machine avx2 = cpu::capped(epyc().machine, Isa::avx2);
  EXPECT_EQ(avx2.cpu, desktop().machine.cpu);
  EXPECT_EQ(avx2.flags, desktop().machine.flags);
  EXPECT_EQ(avx2.caches, epyc().machine.caches);
  EXPECT_EQ(cpu::capped(desktop().machine, Isa::avx512), desktop().machine);
}

// A description says of itself what LLVM knows of the processor of that name.
TEST(Machines, AreDescribedAsLlvmKnowsThem) {
  llvm::InitializeNativeTarget();
  const std::string triple = llvm::sys::getProcessTriple();
  std::string fault;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, fault);
  ASSERT_NE(target, nullptr) << fault;
  for (const auto& [name, machine] : described_machines()) {
    const std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, machine.cpu, machine.features));
    const bool has_avx512 = info->checkFeatures("+avx512f,+avx512vl,+avx512dq,+avx512bw");
    EXPECT_EQ(machine.isa == Isa::avx512, has_avx512) << name;
    EXPECT_EQ(machine.flags.avx512, has_avx512) << name;
    EXPECT_EQ(machine.flags.sse41, info->checkFeatures("+sse4.1")) << name;
    EXPECT_EQ(machine.flags.f16c, info->checkFeatures("+f16c")) << name;
    EXPECT_EQ(machine.flags.avx512_fp16, info->checkFeatures("+avx512fp16")) << name;
    EXPECT_EQ(machine.flags.avx512_bf16, info->checkFeatures("+avx512bf16")) << name;
  }
}

TEST(Machines, CodeIsMadeForAMachineThatTheHostIsNotButDoesNotRun) {
  EXPECT_FALSE(cpu::host_runs(machine_of_nowhere()));
  const kernel::Kernel kernel = layer_norm({2, 100});
  const cpu::KernelRunner runner(kernel, machine_of_nowhere());
  EXPECT_NE(runner.symbol(), "");
  std::vector<std::vector<float>> memory(kernel.args.size(), std::vector<float>(200));
  std::vector<void*> pointers;
  for (auto& each : memory) pointers.push_back(each.data());
  EXPECT_THROW(runner.run(pointers, nullptr, cpu::Executor(1)), Error);
}

// Caches and cores are in the schedule, and there alone.
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
