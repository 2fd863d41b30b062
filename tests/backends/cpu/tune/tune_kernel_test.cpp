// Tuning by measurement, from the request to the choice that this or a later process compiles with. That no choice changes a
// bit is tested in schedule/legal_schedules_test.cpp.
#include "backends/cpu/tune/tune_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cpu/code/cached_costs.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/support/cpu_check.h"
#include "backends/cpu/support/interpreter_bits.h"
#include "backends/cpu/support/kernels_of_rows.h"
#include "compiler/compile.h"
#include "compiler/compile_cache.h"
#include "compiler/ports.h"
#include "support/code_cache_folder.h"
#include "support/graph_builder.h"
#include "support/own_process.h"

namespace lamina::testing {
namespace {

using cpu::Schedule;
using ::testing::StartsWith;

class TuneKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    tuned_texts::forget();
    compiler::CompileCache::instance().clear();
  }
  void TearDown() override { SetUp(); }
};

cpu::Machine machine_of(int cores) {
  cpu::Machine machine = cpu::host_machine();
  machine.cores = cores;
  return machine;
}

// Times the smallest workload that counts: the default and alternatives, each once.
TEST_F(TuneKernel, TimesTheDefaultAndOthers) {
  const cpu::Machine machine = machine_of(2);
  const kernel::Kernel kernel = cpu::with_rows_arranged(layer_norm({100, 300}), machine);
  std::vector<double> done;
  const TunedSchedule<Schedule> tuned = cpu::tune_kernel(kernel, machine, 100, [&](double part) { done.push_back(part); });
  EXPECT_EQ(tuned.by_default.schedule, cpu::KernelRunner::by_rules(kernel, machine).schedule());
  EXPECT_GT(tuned.by_default.microseconds, 0);
  EXPECT_LE(tuned.chosen.microseconds, tuned.by_default.microseconds);
  std::vector<std::string> all{cpu::describe(tuned.by_default.schedule)};
  if (tuned.chosen.schedule != tuned.by_default.schedule) all.push_back(cpu::describe(tuned.chosen.schedule));
  for (const TimedSchedule<Schedule>& other : tuned.others) {
    EXPECT_TRUE(cpu::legal_schedules(kernel, machine).contains(other.schedule));
    all.push_back(cpu::describe(other.schedule));
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "each is timed once";
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), 1);
}

TEST_F(TuneKernel, LeavesTheDefaultWhereThereIsNoTime) {
  const TunedSchedule<Schedule> tuned = cpu::tune_kernel(layer_norm({100, 300}), machine_of(1), 1e-6);
  EXPECT_EQ(tuned.chosen, tuned.by_default);
  EXPECT_TRUE(tuned.others.empty());
}

// Kernels of every kind can be timed: args of any type, one core and several, split rows.
TEST_F(TuneKernel, TakesKernelsOfEveryKind) {
  for (const DataType dtype : {DataType::f32, DataType::bf16, DataType::f64}) {
    for (const Shape& shape : {Shape{70, 100, dtype}, Shape{2, 40000, dtype}, Shape{30, 77, dtype, true}})
      EXPECT_GT(cpu::tune_kernel(backward(shape), machine_of(2), 10).by_default.microseconds, 0);
  }
}

TEST_F(TuneKernel, AKeptChoiceIsWhatRunsFromThenOn) {
  const cpu::Machine machine = machine_of(2);
  const kernel::Kernel kernel = cpu::with_rows_arranged(backward({200, 1000}), machine);
  const Schedule by_rule = cpu::KernelRunner(kernel, machine).schedule();
  EXPECT_THAT(cpu::KernelRunner(kernel, machine).choice(), StartsWith("by rule: "));
  for (const Schedule& other : cpu::legal_schedules(kernel, machine).neighbours(by_rule)) {
    store_tuned<Schedule>(kernel, machine, {{other, 10}, {by_rule, 20}, {}});
    const cpu::KernelRunner runner(kernel, machine);
    EXPECT_EQ(runner.schedule(), other);
    EXPECT_THAT(runner.choice(), StartsWith("measured: "));
    EXPECT_THAT(runner.choice(), ::testing::HasSubstr("10 us, by rule 20 us"));
    EXPECT_EQ(cpu::KernelRunner::by_rules(kernel, machine).schedule(), by_rule);
  }
  for (const int threads : {1, 3}) expect_interpreter_bits(kernel, threads, machine);
}

// ---- through the compiler

Graph norm_graph(int64_t rows = 37) {
  GraphBuilder g;
  g.multi(OpKind::LayerNorm, {g.input(DataType::f32, {rows, 80}), g.input(DataType::f32, {80}), g.input(DataType::f32, {80})},
          {{"keep_stats", false}}, {DataType::f32});
  return g.finish();
}

class TunePartition : public TuneKernel {
 protected:
  static size_t tune(const Graph& graph, double milliseconds, bool again = false) {
    const Partition partition = partition_graph(graph, PartitionPolicy::fusion, cpu_backend()).at(0);
    const compiler::PortTensors ports = compiler::known_ports(partition);
    return compiler::tune_partition(partition, ports.inputs, ports.outputs, cpu_backend(),
                                    {.milliseconds = milliseconds, .again = again});
  }
  static std::string choice_of(const Graph& graph) {
    const Partition partition = partition_graph(graph, PartitionPolicy::fusion, cpu_backend()).at(0);
    return compiler::compile_partition(partition, cpu_backend())->info().schedules.at(0);
  }
};

TEST_F(TunePartition, TimesAKernelOnceAndAgainOnRequest) {
  EXPECT_EQ(tune(norm_graph(), 5), 1U);
  EXPECT_EQ(tune(norm_graph(), 5), 0U);
  EXPECT_EQ(tune(norm_graph(), 5, true), 1U);
  EXPECT_EQ(tune(norm_graph(38), 5), 1U) << "other rows";
}

TEST_F(TunePartition, WhatIsCompiledAfterwardsRunsByIt) {
  EXPECT_THAT(choice_of(norm_graph()), StartsWith("by rule: "));
  tune(norm_graph(), 5);
  EXPECT_THAT(choice_of(norm_graph()), StartsWith("measured: "));
  expect_cpu_matches_reference(norm_graph());
}

TEST_F(TunePartition, DoesNothingOnABackendWithOneWay) {
  const Partition partition = partition_graph(norm_graph(), PartitionPolicy::fusion, reference_backend()).at(0);
  const compiler::PortTensors ports = compiler::known_ports(partition);
  EXPECT_EQ(compiler::tune_partition(partition, ports.inputs, ports.outputs, reference_backend(), {}), 0U);
}

// ---- across processes

TEST_F(TunePartition, DISABLED_InOwnProcess) {
  if (std::getenv("TUNES") != nullptr) {
    EXPECT_EQ(tune(norm_graph(), 5), 1U);
  }
  EXPECT_THAT(choice_of(norm_graph()), StartsWith(std::getenv("EXPECTED_CHOICE")));
}

class TunedOnDisk : public CodeCacheFolder {
 protected:
  void expect_choice(const char* expected, std::map<std::string, std::string> environment = {}) const {
    environment.insert({{"LAMINA_CACHE_DIR", folder_}, {"EXPECTED_CHOICE", expected}});
    expect_passes_in_own_process("TunePartition.DISABLED_InOwnProcess", environment);
  }
  // Returns the cache entry that contains no code.
  fs::path choice_file() const {
    for (const auto& file : fs::directory_iterator(folder_)) {
      if (read_file(file).find("lamina tuned schedule") != std::string::npos) return file;
    }
    ADD_FAILURE() << "no choice is kept";
    return {};
  }
};

TEST_F(TunedOnDisk, IsFoundByAnotherProcess) {
  expect_choice("by rule");
  expect_choice("measured", {{"TUNES", "1"}});
  expect_choice("measured");
  expect_choice("by rule", {{"OMP_NUM_THREADS", "3"}});  // another number of cores
}

TEST_F(TunedOnDisk, IsAMissWhereTheFileIsDamaged) {
  expect_choice("measured", {{"TUNES", "1"}});
  const fs::path file = choice_file();
  const std::string whole = read_file(file);
  std::string changed = whole;
  changed[changed.size() - 3] ^= 1;
  for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() - 1), changed}) {
    write_file(file, damaged);
    expect_choice("by rule");
  }
}

// The digest is correct, but the schedule is not legal for the kernel.
TEST_F(TunedOnDisk, IsAMissWhereTheScheduleIsNotLegal) {
  expect_choice("measured", {{"TUNES", "1"}});
  const fs::path file = choice_file();
  const std::string whole = read_file(file);
  const size_t begin = whole.find("lamina tuned schedule");
  uint64_t key_bytes = 0;
  std::memcpy(&key_bytes, whole.data() + 8, sizeof key_bytes);
  const std::string key = whole.substr(56, key_bytes);
  ASSERT_EQ(56 + key_bytes, begin);
  CodeCache(folder_).store(key, "lamina tuned schedule 1\n1 vector_bits 1024\n1 \n");
  expect_choice("by rule");
  CodeCache(folder_).store(key, "lamina tuned schedule 1\n1 vector_bits 128\n1 \n");
  expect_choice("measured: vector_bits 128");
}

TEST_F(TunedOnDisk, ManyProcessesAtOnce) {
  std::vector<std::thread> processes;
  for (int i = 0; i < 4; ++i) processes.emplace_back([&] { expect_choice("measured", {{"LAMINA_TUNE", "1"}}); });
  for (std::thread& process : processes) process.join();
  expect_choice("measured");
}

// With the environment variable, compiling tunes first.
TEST_F(TunedOnDisk, ByTheEnvironment) {
  expect_choice("by rule", {{"LAMINA_TUNE", "0"}});
  expect_choice("measured", {{"LAMINA_TUNE", "1"}});
  expect_choice("measured");
}

}  // namespace
}  // namespace lamina::testing
