// Every legal schedule of a kernel gives the same bits, on devices with large and with small work-groups: schedules change
// speed alone. PoCL compiles slowly, so a sample of the schedules runs: the defaults, and schedules that together have every
// value of every field. LAMINA_SCHEDULE_SEED is the seed (1 if unset).
#include "backends/gpu/schedule/legal_schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cpu/support/interpreter_bits.h"
#include "backends/gpu/gpu_check.h"
#include "backends/gpu/gpu_kernels.h"
#include "backends/gpu/kernel_runner.h"

namespace lamina::testing {
namespace {

using gpu::Schedule;
using kernel::Kernel;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16;
constexpr int kGroups[] = {1024, 64};  // the most threads in a work-group

struct ScheduledOnGpu {
  const char* name;
  std::function<Graph()> graph;
  size_t step = 0;  // of the graph's plan
  Kernel kernel() const { return first_kernel_of(graph(), step); }
};

Graph norm_across_rows(int64_t rows, int64_t size) {
  GraphBuilder g;
  g.op(OpKind::LayerNorm, {g.input(f32, {rows, size}, {1, rows})}, {{"use_affine", false}, {"keep_stats", false}});
  return g.finish();
}

Graph maximum_graph(DataType dtype, const Dims& shape) {
  GraphBuilder g;
  g.op(OpKind::ReduceMax, {g.input(dtype, shape)}, {{"axes", std::vector<int64_t>{1}}});
  return g.finish();
}

Graph norm_of_sums_by_index() {
  GraphBuilder g;
  const auto rows = g.input(bf16, {90, 300}), indices = g.input(DataType::s64, {90});
  const auto sums = g.op(OpKind::ScatterAdd, {rows, indices}, {{"extent", int64_t{6}}});
  g.op(OpKind::LayerNorm, {sums}, {{"use_affine", false}, {"keep_stats", false}});
  return g.finish();
}

const std::vector<ScheduledOnGpu>& scheduled_kernels() {
  static const std::vector<ScheduledOnGpu> all{
      {"norm_of_a_warp", [] { return norm_graph(f32, 5, 300); }},
      {"norm_of_a_block", [] { return residual_norm_graph(bf16, 3, 2048); }},
      {"maximum_of_odd_rows_of_doubles", [] { return maximum_graph(DataType::f64, {3, 77}); }},
      {"moments_of_several_blocks_across_rows", [] { return norm_across_rows(5, 700); }},
      {"norm_of_several_blocks", [] { return norm_graph(f32, 2, 40000); }},
      {"columns", [] { return norm_backward_graph(f32, 70, 200); }},
      {"columns_of_several_blocks", [] { return norm_backward_graph(bf16, 9, 20000); }},
      {"across_rows", [] { return softmax_graph(f32, {100, 12}, 0); }},
      {"several_blocks_across_rows", [] { return softmax_graph(f32, {700, 5}, 0); }},
      {"maximum_of_zeros", [] { return maximum_graph(f32, {4, 260}); }},
      {"norm_of_sums_by_index", norm_of_sums_by_index},
      {"elementwise", [] { return unary_graph(OpKind::GELU, f32, {7, 24}); }},
      {"windows", [] { return pool_graph(OpKind::AvgPool, bf16, "NCX", {3, 2}); }},
      {"long_windows", [] { return pool_graph(OpKind::MaxPool, f32, "NXC", {7, 6}); }},
      {"maxima_of_windows", [] { return pool_graph(OpKind::MaxPoolBackward, f32, "NCX", {7, 6}); }},
      {"gradient_of_maxima", [] { return pool_graph(OpKind::MaxPoolBackward, f32, "NCX", {8, 6}, {9, 12}, 1); }, 1},
      {"gradient_of_averages", [] { return pool_graph(OpKind::AvgPoolBackward, f32, "NXC", {7, 6}); }},
      {"resampling", [] { return interpolate_graph(OpKind::Interpolate, "linear", "NXC"); }},
      {"gradient_of_resampling", [] { return interpolate_graph(OpKind::InterpolateBackward, "linear", "NCX"); }},
  };
  return all;
}

class GpuSchedulesOf : public ::testing::TestWithParam<ScheduledOnGpu> {
 protected:
  const Kernel kernel_ = GetParam().kernel();
};

gpu::DeviceLimits limits_of(int group) { return {.max_group = group, .compute_units = 4}; }

TEST_P(GpuSchedulesOf, AreWalkedOnceEachAndHoldTheDefault) {
  for (const int group : kGroups) {
    const gpu::LegalSchedules legal = gpu::legal_schedules(kernel_, limits_of(group));
    std::set<std::string> seen;
    for (const Schedule& schedule : legal) {
      const std::string text = gpu::describe(schedule);
      ASSERT_TRUE(seen.insert(text).second) << text;
      ASSERT_EQ(gpu::schedule_of(text), schedule) << text;
      ASSERT_LE(schedule.group_size(), group) << text;
    }
    EXPECT_GE(seen.size(), 2U) << group;
    for (const int units : {1, 132}) {
      const Schedule chosen = gpu::choose_schedule(kernel_, {.max_group = group, .compute_units = units});
      EXPECT_TRUE(legal.contains(chosen)) << group << ": " << gpu::describe(chosen);
    }
  }
}

// A schedule for a device with larger groups is not legal on one with smaller ones.
TEST_P(GpuSchedulesOf, FollowTheDevice) {
  const Schedule chosen = gpu::choose_schedule(kernel_, limits_of(1024));
  const gpu::LegalSchedules of_small = gpu::legal_schedules(kernel_, limits_of(16));
  EXPECT_EQ(of_small.contains(chosen), chosen.group_size() <= 16) << gpu::describe(chosen);
}

// Four loads of 16 bytes are in flight if the registers suffice. With sums of columns, a thread has up to 16 elements.
TEST(GpuDefaultSchedule, GivesAThreadFourChunks) {
  const auto chunks = [](const Graph& graph) {
    const Kernel kernel = first_kernel_of(graph);
    const Schedule chosen = gpu::choose_schedule(kernel, {});
    EXPECT_EQ(chosen.column_registers, kernel.has_column_sum()) << kernel.name;
    return gpu::chunks_of_thread(gpu::sum_order(kernel), chosen);
  };
  for (const DataType dtype : {f32, bf16}) {
    for (const int64_t size : {256, 1024, 4096}) {
      EXPECT_EQ(chunks(norm_graph(dtype, 64, size)), 4) << size;
      EXPECT_EQ(chunks(residual_norm_graph(dtype, 64, size)), 4) << size;
      EXPECT_EQ(chunks(norm_backward_graph(dtype, 64, size)), dtype == f32 ? 4 : 2) << size;
    }
    EXPECT_EQ(chunks(norm_graph(dtype, 64, 65536)), 4);
  }
  EXPECT_EQ(chunks(norm_backward_graph(bf16, 64, 8192)), 2);
}

// Devices without clusters get the schedules of before.
TEST(GpuDefaultSchedule, UsesClustersForRowsOfTwoToEightBlocks) {
  const gpu::DeviceLimits hopper{
      .compute_units = 132, .local_bytes = 227 << 10, .copies_beside_threads = true, .cluster_groups = 8};
  const auto chosen = [&](const Graph& graph) { return gpu::choose_schedule(first_kernel_of(graph), hopper); };
  for (const int64_t size : {16384, 16385, 65536, 131072, 131073}) {
    const bool fits = size > 16384 && size <= 131072;
    EXPECT_EQ(chosen(norm_graph(f32, 64, size)).cluster, fits) << size;
    EXPECT_EQ(chosen(norm_backward_graph(f32, 64, size)).cluster, fits) << size;
  }
  // Two groups on a multiprocessor, unless they read too much again.
  EXPECT_EQ(chosen(norm_graph(f32, 64, 65536)).group_size(), 512);
  EXPECT_EQ(chosen(residual_norm_graph(bf16, 64, 65536)).group_size(), 512);
  EXPECT_EQ(chosen(residual_norm_graph(f32, 64, 65536)).group_size(), 1024);
  EXPECT_FALSE(gpu::choose_schedule(first_kernel_of(norm_graph(f32, 64, 65536)), {.compute_units = 132}).together);
}

// Teams that sum columns wait for row after row: most where a row is few bytes per thread.
TEST(GpuDefaultSchedule, CopiesShortRowsAheadWhereColumnsAreSummed) {
  const gpu::DeviceLimits hopper{.local_bytes = 227 << 10, .copies_beside_threads = true, .cluster_groups = 8};
  const auto copies = [&](const Graph& graph) { return gpu::choose_schedule(first_kernel_of(graph), hopper).copies_ahead; };
  EXPECT_TRUE(copies(norm_backward_graph(bf16, 64, 1024)));
  EXPECT_TRUE(copies(norm_backward_graph(bf16, 64, 65536)));
  EXPECT_FALSE(copies(norm_backward_graph(f32, 64, 1024)));
  EXPECT_FALSE(copies(norm_backward_graph(f32, 64, 65536)));  // two rows do not fit
  EXPECT_FALSE(copies(norm_graph(bf16, 64, 1024)));
}

// Each group has one block of the row for all rows of a partial sum.
TEST(GpuDefaultSchedule, KeepsSumsOfColumnsOfSeveralBlocksInRegisters) {
  for (const DataType dtype : {f32, bf16}) {
    for (const int64_t rows : {8, 100000}) {
      const Schedule chosen = gpu::choose_schedule(first_kernel_of(norm_backward_graph(dtype, rows, 65536)), {});
      EXPECT_TRUE(chosen.split && chosen.column_registers) << gpu::describe(chosen);
    }
  }
}

// Values of fields that have run: numbers for any kernel, yes and no for each kernel.
class Coverage {
 public:
  int new_values(const std::string& kernel, const Schedule& schedule) const {
    int count = 0;
    for_each(kernel, schedule, [&](const std::string& value) { count += seen_.contains(value) ? 0 : 1; });
    return count;
  }
  void add(const std::string& kernel, const Schedule& schedule) {
    for_each(kernel, schedule, [&](const std::string& value) { seen_.insert(value); });
  }

 private:
  template <typename Visit>
  static void for_each(const std::string& kernel, const Schedule& schedule, const Visit& visit) {
    Schedule::for_each_field([&](const char* name, const auto& field) {
      const bool is_number = !std::is_same_v<std::remove_cvref_t<decltype(schedule.*field)>, bool>;
      visit(join(is_number ? "" : kernel, " ", name, " ", schedule.*field));
    });
  }
  std::set<std::string> seen_;
};

// The defaults, then the schedules with most new values until there is none.
std::vector<Schedule> sample(const std::string& name, const Kernel& kernel, const gpu::DeviceLimits& device,
                             std::mt19937_64& random, Coverage& coverage) {
  std::vector<Schedule> all, drawn;
  for (const int group : kGroups) {
    if (group > device.max_group) continue;
    gpu::DeviceLimits limits = device;
    limits.max_group = group;
    for (const Schedule& schedule : gpu::legal_schedules(kernel, limits)) all.push_back(schedule);
    drawn.push_back(gpu::choose_schedule(kernel, limits));
    coverage.add(name, drawn.back());
  }
  std::shuffle(all.begin(), all.end(), random);
  const auto fewer = [&](const Schedule& a, const Schedule& b) {
    return coverage.new_values(name, a) < coverage.new_values(name, b);
  };
  while (true) {
    const Schedule& best = *std::max_element(all.begin(), all.end(), fewer);
    if (coverage.new_values(name, best) == 0) return drawn;
    coverage.add(name, best);
    drawn.push_back(best);
  }
}

// Rows of every kind; for a maximum, zeros of both signs.
Memory memory_of(const Kernel& kernel) {
  Memory memory = memory_for(kernel);
  for (size_t a = 0; a < kernel.args.size(); ++a) {
    for (int64_t i = 0; kernel.name.find("max") != std::string::npos && i < span(kernel, kernel.args[a]); ++i)
      store_from_double(kernel.args[a].dtype, memory[a].data(), i, i % 3 == 0 ? 0.0 : i % 3 == 1 ? -0.0 : -1.0);
  }
  return memory;
}

Memory run(const std::shared_ptr<gpu::Device>& device, const Kernel& kernel, const Schedule& schedule, Memory memory) {
  const gpu::KernelRunner runner(device, kernel, schedule);
  std::vector<gpu::BufferView> views;
  for (const auto& block : memory) {
    views.push_back({device->allocate(block.size()), 0});
    device->copy_in(nullptr, views.back().memory, 0, block.data(), block.size());
  }
  const gpu::BufferView scratch{device->allocate(runner.scratch_bytes()), 0};
  runner.run(nullptr, views, scratch);
  for (size_t a = 0; a < memory.size(); ++a) {
    device->copy_out(nullptr, memory[a].data(), views[a].memory, 0, memory[a].size());
    device->wait(nullptr);
    device->release(views[a].memory);
  }
  device->release(scratch.memory);
  return memory;
}

INSTANTIATE_TEST_SUITE_P(Kernels, GpuSchedulesOf, ::testing::ValuesIn(scheduled_kernels()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(GpuLegalSchedules, GiveTheSameBits) {
  std::string why;
  const std::shared_ptr<gpu::Device>& device = test_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  const char* const text = std::getenv("LAMINA_SCHEDULE_SEED");
  std::mt19937_64 random(text == nullptr ? 1 : std::strtoull(text, nullptr, 10));
  Coverage coverage;
  for (const ScheduledOnGpu& each : scheduled_kernels()) {
    const Kernel kernel = each.kernel();
    const Memory initial = memory_of(kernel);
    const std::vector<Schedule> schedules = sample(each.name, kernel, device->limits(), random, coverage);
    ASSERT_FALSE(schedules.empty()) << each.name;
    const uint64_t expected = digest(kernel, run(device, kernel, schedules.front(), initial));
    for (const Schedule& schedule : std::span(schedules).subspan(1))
      EXPECT_EQ(digest(kernel, run(device, kernel, schedule, initial)), expected)
          << each.name << ": " << gpu::describe(schedule) << "\ndiffers from " << gpu::describe(schedules.front());
    RecordProperty(each.name, static_cast<int>(schedules.size()));
  }
}

// Many groups, several lanes a thread: the folds of lanes are functions that PoCL's compiler does not inline by itself, and it
// gives local memory to a group only where a kernel itself uses it.
TEST(GpuLegalSchedules, GroupsThatRunTogetherShareNoLocalMemory) {
  std::string why;
  const std::shared_ptr<gpu::Device>& device = test_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  const Kernel kernel = first_kernel_of(norm_graph(bf16, 300, 2048));
  Schedule one_lane = gpu::choose_schedule(kernel, device->limits()), halved = one_lane;
  one_lane.team = gpu::sum_order(kernel).lanes;
  halved.team = one_lane.team / 2;
  one_lane.rows_per_group = halved.rows_per_group = 1;
  for (const Schedule& schedule : {one_lane, halved})
    ASSERT_TRUE(gpu::legal_schedules(kernel, device->limits()).contains(schedule)) << gpu::describe(schedule);
  const Memory initial = memory_of(kernel);
  const uint64_t expected = digest(kernel, run(device, kernel, one_lane, initial));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(digest(kernel, run(device, kernel, halved, initial)), expected) << "run " << i;
}

// ---- the order of summation

// The number of rows and their strides decide no bits.
TEST(GpuSumOrder, FollowsFromTheRowAlone) {
  EXPECT_EQ(gpu::sum_order(first_kernel_of(norm_graph(f32, 3, 1000))),
            gpu::sum_order(first_kernel_of(norm_graph(f32, 900, 1000))));
  EXPECT_EQ(gpu::sum_order(first_kernel_of(norm_backward_graph(bf16, 3, 20000))),
            gpu::sum_order(first_kernel_of(norm_backward_graph(bf16, 900, 20000))));
  EXPECT_EQ(gpu::sum_order(first_kernel_of(norm_graph(f32, 64, 1024))), (gpu::SumOrder{.chunk = 4, .lanes = 64, .steps = 4}));
  EXPECT_EQ(gpu::sum_order(first_kernel_of(unary_graph(OpKind::ReLU, f32, {64, 64}))), gpu::SumOrder{});
}

TEST(GpuScheduleText, IsReadBackOrRefused) {
  EXPECT_EQ(gpu::schedule_of(""), Schedule{});
  EXPECT_EQ(gpu::schedule_of("team 32, rows_per_group 4")->rows_per_group, 4);
  for (const char* const text : {"team", "team x", "team 32,", "team 1", "teams 2", "split 2", "vector 2, team 2"})
    EXPECT_FALSE(gpu::schedule_of(text)) << text;
}

}  // namespace
}  // namespace lamina::testing
