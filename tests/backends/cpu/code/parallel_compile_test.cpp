// Threads compile different kernels concurrently; a kernel that several threads request is compiled by one of them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/code/jit.h"
#include "backends/cpu/code/object_code.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/kernels_of_rows.h"

namespace lamina::testing {
namespace {

std::atomic<int> inside = 0, entered = 0;
std::atomic<bool> have_met = false;

// Waits up to ten seconds for a second thread in the code generator.
void wait_for_another() {
  if (++inside > 1) have_met = true;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!have_met && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  --inside;
}

void count() { ++entered; }

class ParallelCompile : public ::testing::Test {
 protected:
  void SetUp() override {
    inside = entered = 0;
    have_met = false;
  }
  void TearDown() override { cpu::called_while_code_is_generated = nullptr; }

  // Thread i compiles the kernel for rows of sizes[i].
  static std::vector<cpu::CompiledKernel> compile(const std::vector<int64_t>& sizes) {
    const cpu::Machine machine = cpu::host_machine();
    std::vector<cpu::CompiledKernel> compiled(sizes.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < sizes.size(); ++i) {
      threads.emplace_back([&, i] {
        const kernel::Kernel kernel = layer_norm({64, sizes[i]});
        compiled[i] = cpu::compile_kernel(kernel, cpu::choose_schedule(kernel, machine, true), machine);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return compiled;
  }
};

// Kernels share an array of locks, as few as three under the thread sanitizer: among eight kernels, some use different locks.
TEST_F(ParallelCompile, TwoThreadsAreInTheCodeGeneratorAtOnce) {
  cpu::called_while_code_is_generated = wait_for_another;
  const auto compiled = compile({1001, 1003, 1005, 1007, 1009, 1011, 1013, 1015});
  EXPECT_TRUE(have_met);
  for (const cpu::CompiledKernel& each : compiled) EXPECT_NE(each.function, nullptr);
}

TEST_F(ParallelCompile, OneThreadCompilesAKernelThatManyAskFor) {
  cpu::called_while_code_is_generated = count;
  const auto compiled = compile({2001, 2001, 2001, 2001, 2001, 2001, 2001, 2001});
  EXPECT_EQ(entered, 1);
  for (const cpu::CompiledKernel& each : compiled) EXPECT_EQ(each.function, compiled[0].function);
}

}  // namespace
}  // namespace lamina::testing
