// Tuning on a GPU (PoCL on a machine without one), from the request to the choice that this or a later process compiles with.
// That no choice changes a bit is tested in legal_schedules_test.cpp.
#include "backends/gpu/tune_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "backends/gpu/gpu_check.h"
#include "backends/gpu/gpu_kernels.h"
#include "backends/gpu/kernel_runner.h"
#include "backends/gpu/schedule/legal_schedules.h"
#include "compiler/ports.h"
#include "support/code_cache_folder.h"
#include "support/own_process.h"

namespace lamina::testing {
namespace {

using gpu::Schedule;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr DataType f32 = DataType::f32;

#define LAMINA_DEVICE_OR_SKIP(device)                                     \
  std::string why_no_device;                                              \
  const std::shared_ptr<gpu::Device> device = test_device(why_no_device); \
  if (device == nullptr) GTEST_SKIP() << why_no_device

class TuneOnGpu : public ::testing::Test {
 protected:
  void SetUp() override { tuned_texts::forget(); }
  void TearDown() override { tuned_texts::forget(); }

  static size_t tune(const Graph& graph, const Backend& backend, double milliseconds, bool again = false) {
    const Partition partition = partition_graph(graph, PartitionPolicy::fusion, backend).at(0);
    const compiler::PortTensors ports = compiler::known_ports(partition);
    return compiler::tune_partition(partition, ports.inputs, ports.outputs, backend,
                                    {.milliseconds = milliseconds, .again = again});
  }
  static std::string choice_of(const Graph& graph, const Backend& backend) {
    const Partition partition = partition_graph(graph, PartitionPolicy::fusion, backend).at(0);
    return compiler::compile_partition(partition, backend)->info().schedules.at(0);
  }
};

TEST_F(TuneOnGpu, TimesTheDefaultAndOthersOnceEach) {
  LAMINA_DEVICE_OR_SKIP(device);
  const kernel::Kernel kernel = first_kernel_of(unary_graph(OpKind::ReLU, f32, {64, 24}));
  std::vector<double> done;
  const TunedSchedule<Schedule> tuned = gpu::tune_kernel(device, kernel, 4000, [&](double part) { done.push_back(part); });
  EXPECT_EQ(tuned.by_default.schedule, gpu::choose_schedule(kernel, device->limits()));
  EXPECT_GT(tuned.by_default.microseconds, 0);
  EXPECT_LE(tuned.chosen.microseconds, tuned.by_default.microseconds);
  std::vector<std::string> all{gpu::describe(tuned.by_default.schedule)};
  if (tuned.chosen.schedule != tuned.by_default.schedule) all.push_back(gpu::describe(tuned.chosen.schedule));
  for (const TimedSchedule<Schedule>& other : tuned.others) {
    EXPECT_TRUE(gpu::legal_schedules(kernel, device->limits()).contains(other.schedule));
    all.push_back(gpu::describe(other.schedule));
  }
  EXPECT_GE(all.size(), 2U);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), 1);
}

TEST_F(TuneOnGpu, LeavesTheDefaultWhereThereIsNoTime) {
  LAMINA_DEVICE_OR_SKIP(device);
  for (const Graph& graph : {norm_backward_graph(DataType::bf16, 40, 64), norm_graph(f32, 1, 20000)}) {
    const TunedSchedule<Schedule> tuned = gpu::tune_kernel(device, first_kernel_of(graph), 1e-6);
    EXPECT_EQ(tuned.chosen, tuned.by_default);
    EXPECT_TRUE(tuned.others.empty());
  }
}

TEST_F(TuneOnGpu, AStoredChoiceIsWhatRunsFromThenOn) {
  LAMINA_DEVICE_OR_SKIP(device);
  const kernel::Kernel kernel = first_kernel_of(norm_graph(f32, 37, 64));
  const Schedule by_rule = gpu::choose_schedule(kernel, device->limits());
  EXPECT_EQ(gpu::KernelRunner(device, kernel).schedule_name(), "packed");
  const Schedule other = gpu::legal_schedules(kernel, device->limits()).neighbours(by_rule).at(0);
  store_tuned<Schedule>(kernel, *device, {{other, 10}, {by_rule, 20}, {}});
  const gpu::KernelRunner runner(device, kernel);
  EXPECT_EQ(runner.schedule(), other);
  EXPECT_THAT(runner.schedule_name(), StartsWith("measured: packed, team "));
  EXPECT_THAT(runner.schedule_name(), HasSubstr("; 10 us, by rule 20 us"));
  EXPECT_EQ(gpu::KernelRunner(device, first_kernel_of(norm_graph(f32, 38, 64))).schedule_name(), "packed") << "other rows";
}

TEST_F(TuneOnGpu, IsUsedByTheCompilerAndRepeatedOnRequest) {
  LAMINA_GPU_OR_SKIP(gpu);
  const Graph graph = norm_graph(f32, 37, 64);
  EXPECT_EQ(choice_of(graph, *gpu), "packed");
  EXPECT_EQ(tune(graph, *gpu, 1), 1U);
  EXPECT_EQ(tune(graph, *gpu, 1), 0U);
  EXPECT_EQ(tune(graph, *gpu, 1, true), 1U);
  EXPECT_THAT(choice_of(graph, *gpu), StartsWith("measured: packed, "));
  expect_gpu_is_right(*gpu, graph);
}

// ---- across processes

TEST_F(TuneOnGpu, DISABLED_InOwnProcess) {
  LAMINA_GPU_OR_SKIP(gpu);
  EXPECT_THAT(choice_of(norm_graph(f32, 37, 64), *gpu), StartsWith(std::getenv("EXPECTED_CHOICE")));
}

class TunedOnDiskForGpu : public CodeCacheFolder {
 protected:
  void expect_choice(const char* expected, std::map<std::string, std::string> environment = {}) const {
    environment.insert({{"LAMINA_CACHE_DIR", folder_}, {"EXPECTED_CHOICE", expected}});
    expect_passes_in_own_process("TuneOnGpu.DISABLED_InOwnProcess", environment);
  }
};

TEST_F(TunedOnDiskForGpu, IsFoundByAnotherProcess) {
  LAMINA_DEVICE_OR_SKIP(device);
  expect_choice("packed");
  expect_choice("measured: packed, ", {{"LAMINA_TUNE", "1"}});
  expect_choice("measured: packed, ");
}

}  // namespace
}  // namespace lamina::testing
