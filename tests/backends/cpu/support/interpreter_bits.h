// Runs hand-built kernels on the CPU and in the interpreter of the kernel IR and expects the same bits.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/run/kernel_runner.h"
#include "interface/data_type.h"
#include "kernels/interpret.h"

namespace lamina::testing {

using Memory = std::vector<std::vector<std::byte>>;  // one block per arg

inline int64_t span(const kernel::Kernel& kernel, const kernel::Arg& arg) { return kernel::span_of(kernel, arg); }

// Fills rows of every kind: ordinary, with a large offset from its first elements, with equal elements, with a NaN. Integers
// are legal indices, tables those of the kernel.
inline Memory memory_for(const kernel::Kernel& kernel) {
  std::mt19937 random(11);
  std::normal_distribution<double> gauss;
  Memory memory;
  for (const kernel::Arg& arg : kernel.args) {
    const auto range = kernel::index_range(kernel, static_cast<int>(&arg - kernel.args.data()));
    const int64_t elements = span(kernel, arg);
    const bool is_integer = arg.dtype == DataType::s32 || arg.dtype == DataType::s64;
    memory.emplace_back(static_cast<size_t>(elements) * 8 + 64);
    for (int64_t i = 0; i < elements; ++i) {
      double value = i % 97 == 13 ? 40 + gauss(random) : i % 1009 == 500 ? NAN : gauss(random);
      if (range && is_integer) value = static_cast<double>(i * 7 % (range->last - range->first + 1) + range->first);
      if (!arg.table.empty()) value = static_cast<double>(arg.table.at(static_cast<size_t>(i)));
      store_from_double(arg.dtype, memory.back().data(), i, value);
    }
  }
  return memory;
}

inline std::vector<double> values(const kernel::Kernel& kernel, size_t arg, const std::vector<std::byte>& data) {
  std::vector<double> all;
  for (int64_t i = 0; i < span(kernel, kernel.args[arg]); ++i)
    all.push_back(load_as_double(kernel.args[arg].dtype, data.data(), i));
  return all;
}

// Returns a hash of the outputs that treats all NaNs as equal. With it, a kernel that runs on several machines and numbers of
// threads is interpreted only once.
inline uint64_t digest(const kernel::Kernel& kernel, const Memory& memory) {
  uint64_t hash = 14695981039346656037u;
  for (size_t a = 0; a < kernel.args.size(); ++a) {
    const int64_t count = span(kernel, kernel.args[a]);
    for (int64_t i = 0; i < count; ++i) {
      const double value = load_as_double(kernel.args[a].dtype, memory[a].data(), i);
      hash = (hash ^ std::bit_cast<uint64_t>(std::isnan(value) ? double{NAN} : value)) * 1099511628211u;
    }
  }
  return hash;
}

// Runs the kernel for `machine`, whose instructions the host supports, with the default schedule or a given one.
inline Memory run_on_machine(const kernel::Kernel& kernel, int threads, const cpu::Machine& machine, Memory actual,
                             cpu::Executor::Kind kind = cpu::Executor::Kind::workers, const cpu::Schedule* given = nullptr) {
  const cpu::KernelRunner runner =
      given != nullptr ? cpu::KernelRunner(kernel, machine, *given) : cpu::KernelRunner(kernel, machine);
  std::vector<void*> pointers;
  for (auto& buffer : actual) pointers.push_back(buffer.data());
  std::vector<std::byte> scratch(runner.scratch_bytes() + 64);
  void* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  runner.run(pointers, aligned, cpu::Executor(kind, threads));
  return actual;
}

inline void expect_interpreter_bits(const kernel::Kernel& kernel, int threads, const cpu::Machine& machine, Memory memory,
                                    const cpu::Schedule* given = nullptr) {
  Memory expected = memory;
  const Memory actual = run_on_machine(kernel, threads, machine, std::move(memory), cpu::Executor::Kind::workers, given);
  std::vector<kernel::InterpretedArg> args;
  for (size_t a = 0; a < kernel.args.size(); ++a) args.push_back({expected[a].data(), span(kernel, kernel.args[a])});
  kernel::interpret(kernel, args);
  for (size_t a = 0; a < kernel.args.size(); ++a) {
    const auto want = values(kernel, a, expected[a]), got = values(kernel, a, actual[a]);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i]))
          << kernel.args[a].name << "[" << i << "]: " << got[i] << ", interpreter " << want[i] << "\n"
          << kernel::print(kernel);
    }
  }
}

// Uses memory_for(kernel), which is kept for the next call, because calls in a row often differ only in threads. A digest that
// matched the interpreter once is not interpreted again.
inline void expect_interpreter_bits(const kernel::Kernel& kernel, int threads, const cpu::Machine& machine,
                                    const cpu::Schedule* given = nullptr) {
  static std::map<std::string, uint64_t> seen;
  static std::string last_key;
  static Memory memory;
  const std::string key = kernel::print(kernel);
  if (key != last_key) {
    memory = memory_for(kernel);
    last_key = key;
  }
  const auto known = seen.find(key);
  const uint64_t found = digest(kernel, run_on_machine(kernel, threads, machine, memory, cpu::Executor::Kind::workers, given));
  if (threads > 1) {
    const Memory by_openmp = run_on_machine(kernel, threads, machine, memory, cpu::Executor::Kind::openmp, given);
    EXPECT_EQ(digest(kernel, by_openmp), found) << "OpenMP's threads\n" << key;
  }
  if (known != seen.end() && known->second == found) return;
  expect_interpreter_bits(kernel, threads, machine, memory, given);
  if (!::testing::Test::HasFatalFailure()) seen[key] = found;
}

}  // namespace lamina::testing
