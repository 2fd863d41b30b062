// Calls that need more stack than a thread has, and the amount of stack that LLVM needs.
#include "backends/cpu/code/call_with_stack.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "backends/cpu/numerics/bits.h"
#include "backends/cpu/support/described_machines.h"
#include "support/painted_stack.h"

namespace lamina::testing {
namespace {

using cpu::call_with_stack;
using cpu::kStackForLlvm;

constexpr size_t kSmall = size_t{128} << 10;

std::thread::id thread_of_call(size_t bytes) {
  std::thread::id of_call;
  call_with_stack(bytes, [&] { of_call = std::this_thread::get_id(); });
  return of_call;
}

TEST(EnoughStack, CallsHereWhereThereIsRoom) {
  EXPECT_EQ(thread_of_call(kSmall), std::this_thread::get_id());
  stack_taken_by([] { EXPECT_EQ(thread_of_call(kSmall / 2), std::this_thread::get_id()); }, kSmall);
}

TEST(EnoughStack, CallsElsewhereWhereThereIsNot) {
  const size_t taken = stack_taken_by(
      [] {
        EXPECT_NE(thread_of_call(kSmall), std::this_thread::get_id());
        call_with_stack(kSmall, [] {
          volatile char wide[kSmall];
          for (size_t i = 0; i < kSmall; i += 512) wide[i] = 1;
          EXPECT_EQ(wide[kSmall / 2], 1);
        });
      },
      kSmall);
  EXPECT_LT(taken, kSmall / 2);
}

TEST(EnoughStack, ThrowsOnWhatTheCallThrows) {
  const auto fail = [] { throw std::length_error("thrown by the call"); };
  EXPECT_THROW(call_with_stack(kSmall, fail), std::length_error);
  EXPECT_THROW(stack_taken_by([&] { call_with_stack(2 * kSmall, fail); }, kSmall), std::length_error);
}

TEST(EnoughStack, SaysWhereThereIsNoThread) {
  EXPECT_THROW(call_with_stack(size_t{1} << 60, [] { ADD_FAILURE() << "was called"; }), std::bad_alloc);
}

class StackForLlvm : public ::testing::TestWithParam<DescribedMachine> {};
INSTANTIATE_TEST_SUITE_P(Machines, StackForLlvm, ::testing::ValuesIn(described_machines()), name_of_machine);

// Measures the whole compilation of the widest bodies. No other test uses this row length, so the code is not in the process's
// cache.
TEST_P(StackForLlvm, IsFourTimesWhatItTakes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer makes frames larger";
#endif
  size_t most = 0;
  std::string widest;
  for (const BitsCase& graph : bits_cases()) {
    if (!std::string(graph.name).starts_with("relu_backward") && !std::string(graph.name).starts_with("add_layer_norm"))
      continue;
    for (const DataType dtype : graph.dtypes) {
      const auto compile = [&] { BitsRun(graph, 3, 1499, dtype, GetParam().machine).compiled(); };
      const size_t taken = stack_taken_by(compile, 8 * kStackForLlvm);
      if (taken > most) widest = std::string(graph.name) + " of " + std::string(name_of(dtype));
      most = std::max(most, taken);
    }
  }
  RecordProperty("bytes", std::to_string(most));
  EXPECT_LE(most, kStackForLlvm / 4) << widest;
  EXPECT_GE(most, size_t{8} << 10) << "nothing was compiled";
}

}  // namespace
}  // namespace lamina::testing
