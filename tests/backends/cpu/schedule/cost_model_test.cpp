// The cost model: its estimates depend only on the described machine, and its first choice is the default schedule.
#include "backends/cpu/schedule/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "backends/cpu/schedule/streaming.h"
#include "backends/cpu/schedule/tiles.h"
#include "backends/cpu/schedule/timed_schedules.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/scheduled_kernels.h"
#include "backends/cpu/support/schedules_with.h"

namespace lamina::testing {
namespace {

using cpu::CostModel;
using cpu::Machine;
using cpu::Schedule;
using kernel::Kernel;

constexpr DataType bf16 = DataType::bf16;

// A machine with a last-level cache of 32 MiB by default.
Machine machine_of(int64_t last = int64_t{32} << 20) {
  Machine machine = epyc().machine;
  machine.caches.last = last;
  machine.cores = 2;
  return machine;
}

Schedule choice(const Kernel& kernel, const Machine& machine = machine_of()) {
  return cpu::choose_schedule(kernel, machine, true);
}

double time(const Kernel& kernel, const Schedule& schedule, const Machine& machine = machine_of()) {
  return CostModel(kernel, machine).microseconds(schedule);
}

TEST(CostModel, IsPositiveForEveryLegalScheduleOfEveryKernel) {
  for (const ScheduledKernel& of : scheduled_kernels()) {
    for (const DescribedMachine& described : described_machines()) {
      const Kernel kernel = cpu::with_rows_arranged(of.kernel, described.machine);
      const CostModel model(kernel, described.machine);
      std::mt19937_64 random(3);
      for (int i = 0; i < 50; ++i) {
        const Schedule schedule = cpu::legal_schedules(kernel, described.machine).sample(random);
        const double microseconds = model.microseconds(schedule);
        ASSERT_TRUE(std::isfinite(microseconds) && microseconds > 0) << of.name << ": " << cpu::describe(schedule);
      }
    }
  }
}

TEST(CostModel, KernelsWithoutElementsHaveATimeToo) {
  const auto with_empty_rows = [](Kernel kernel) {  // which keep their strides
    kernel.extents.back() = 0;
    return kernel;
  };
  for (const Kernel& kernel : {layer_norm({0, 768}), with_empty_rows(layer_norm({4, 8})), with_empty_rows(softmax({4, 8}))}) {
    const CostModel model(kernel, machine_of());
    std::mt19937_64 random(3);
    for (int i = 0; i < 50; ++i) {
      const Schedule schedule = cpu::legal_schedules(kernel, machine_of()).sample(random);
      EXPECT_TRUE(std::isfinite(model.microseconds(schedule))) << cpu::describe(schedule);
      EXPECT_TRUE(std::isfinite(model.nanoseconds_of_row(schedule))) << cpu::describe(schedule);
    }
    choice(kernel);  // ends
  }
}

TEST(CostModel, WhatTheLastLevelHoldsIsWrittenToIt) {
  const Kernel small = layer_norm({2048, 768}), large = layer_norm({32768, 768});
  EXPECT_TRUE(choice(small).streamed.empty());
  EXPECT_FALSE(choice(large).streamed.empty());
  EXPECT_TRUE(choice(large, machine_of(int64_t{512} << 20)).streamed.empty());
}

TEST(CostModel, TheLastLevelKeepsAPartOfWhatExceedsIt) {
  const Schedule schedule = cpu::choose_schedule(layer_norm({2048, 256}), machine_of(), false);
  const auto of_row = [&](int64_t rows) { return time(layer_norm({rows, 256}), schedule) / static_cast<double>(rows); };
  EXPECT_GT(of_row(16384), 1.2 * of_row(8192));
  EXPECT_GT(of_row(32768), 1.2 * of_row(16384));
  EXPECT_NEAR(of_row(50000), of_row(100000), 1e-4);
}

// Stores that wait for memory take the whole walk; reading is the work of the walks before.
TEST(CostModel, RowsAreReadBeforeTheWalkWhoseStoresWait) {
  const auto through = [](const Kernel& kernel) { return cpu::choose_schedule(kernel, machine_of(), false); };
  EXPECT_FALSE(through(layer_norm({16384, 256})).prefetched_within_row.empty());
  EXPECT_TRUE(through(layer_norm({4096, 256})).prefetched_within_row.empty()) << "in a cache";
}

TEST(CostModel, TimesDecideWhereOtherProgramsMatter) {
  const Machine machine = machine_of();
  EXPECT_FALSE(cpu::stores_depend_on_others(layer_norm({1000, 256}), machine)) << "in the cores' own caches";
  EXPECT_TRUE(cpu::stores_depend_on_others(layer_norm({4000, 256}), machine));
  EXPECT_TRUE(cpu::stores_depend_on_others(layer_norm({60000, 256}), machine));
  EXPECT_FALSE(cpu::stores_depend_on_others(layer_norm({80000, 256}), machine)) << "in memory";
  EXPECT_FALSE(cpu::stores_depend_on_others(layer_norm({4000, 256}), machine_of(0))) << "of an unknown size";
  EXPECT_FALSE(choice(layer_norm({4000, 256}), cpu::with_crowded_cache(machine)).streamed.empty());
  EXPECT_FALSE(cpu::prefetches_depend_on_others(layer_norm({4000, 256}), machine)) << "in the last level";
  EXPECT_TRUE(cpu::prefetches_depend_on_others(layer_norm({80000, 256}), machine));
  EXPECT_FALSE(cpu::prefetches_depend_on_others(layer_norm({80000, 256}), machine_of(0))) << "of an unknown size";
}

// In a cache the stores, in memory the prefetches, between both; each alternative differs from the first schedule in that.
TEST(CostModel, TimedSchedulesDifferInTheirAccesses) {
  const auto timed = [](int64_t rows) {
    const Kernel kernel = layer_norm({rows, 256});
    const Machine machine = machine_of();
    return cpu::timed_schedules(cpu::choose_schedule(kernel, machine, true), kernel, machine, false);
  };
  EXPECT_EQ(timed(1000).size(), 1U);
  const std::vector<Schedule> in_cache = timed(4000), between = timed(40000), in_memory = timed(80000);
  ASSERT_EQ(in_cache.size(), 2U);
  EXPECT_NE(in_cache[0].streamed.empty(), in_cache[1].streamed.empty());
  EXPECT_EQ(between.size(), 3U);
  ASSERT_EQ(in_memory.size(), 2U);
  EXPECT_EQ(in_memory[0].streamed, in_memory[1].streamed);
  EXPECT_NE(in_memory[0].prefetched_within_row.empty(), in_memory[1].prefetched_within_row.empty());
}

// Streams of rows that start within lines need more instructions, which pay only where memory is slow.
TEST(CostModel, StreamsThatJoinLinesAreTimedAtAnySize) {
  const Kernel kernel = layer_norm({1000000, 31});
  const Machine machine = machine_of();
  const Schedule first = cpu::choose_schedule(kernel, machine, true);
  ASSERT_TRUE(first.realigns);
  const std::vector<Schedule> timed = cpu::timed_schedules(first, kernel, machine, false);
  EXPECT_TRUE(std::any_of(timed.begin(), timed.end(), [](const Schedule& each) { return each.streamed.empty(); }));
}

// From a schedule that prefetches within rows, the other one prefetches the next rows.
TEST(CostModel, TimedPrefetchesGoBothWays) {
  const Kernel kernel = layer_norm({80000, 256});
  const Machine machine = machine_of();
  const Schedule first = cpu::choose_schedule(kernel, machine, true);
  const Schedule second = cpu::timed_schedules(first, kernel, machine, false).back();
  const Schedule third = cpu::timed_schedules(second, kernel, machine, false).back();
  EXPECT_NE(second.prefetched_within_row.empty(), third.prefetched_within_row.empty());
  for (const Schedule& each : {first, second, third}) EXPECT_TRUE(each.prefetches_rows || !each.prefetched_within_row.empty());
}

TEST(CostModel, StoresThatCostMoreAreNotTaken) {
  const Kernel large = layer_norm({32768, 768});
  Machine machine = machine_of();
  machine.costs.stream = 3 * machine.costs.write[3];
  EXPECT_TRUE(choice(large, machine).streamed.empty());
}

// Rows of a loop whose lines are at the same offset of a page, and are stored in parts, in turns.
TEST(CostModel, RowsOfALoopDoNotStreamPartsOfLinesInTurns) {
  const auto parts = [](const Kernel& kernel, const Schedule& schedule, const Machine& machine) {
    int stores = 0;
    for (const int a : schedule.streamed) stores += cpu::stores_of_parts(kernel, kernel.arg(a), schedule, machine);
    return stores;
  };
  Schedule two;
  two.rows_per_tile = two.rows_together = 2;
  const auto parts_of_two = [&](const Kernel& kernel, const Machine& machine) {
    Schedule schedule = two;
    schedule.vector_bits = cpu::vector_bits(machine);
    schedule.streamed = cpu::streamable_args(kernel, schedule);
    return parts(kernel, schedule, machine);
  };
  const Machine narrow = desktop().machine;
  EXPECT_EQ(parts_of_two(backward({8192, 4096, bf16}), narrow), 2) << "two vectors are stored as one";
  EXPECT_EQ(parts_of_two(backward({8192, 4096}), narrow), 2);
  EXPECT_EQ(parts_of_two(backward({8192, 4128, bf16}), narrow), 0) << "rows begin at different offsets";
  EXPECT_EQ(parts_of_two(backward({8192, 4096}), epyc().machine), 0) << "a vector is a line";
  EXPECT_EQ(parts_of_two(backward({8192, 4096, bf16}), epyc().machine), 0) << "two vectors are stored as one";
  for (const DescribedMachine& described : {epyc(), xeon(), desktop(), plain(), neoverse_n1()}) {
    for (const DataType dtype : {bf16, DataType::f16, DataType::f32}) {
      for (const int64_t size : {1024, 2048, 3072, 4096, 16384}) {
        const Kernel kernel = backward({32768, size, dtype});
        const Schedule whole = choice(kernel, described.machine), split = cpu::split_schedule(whole, kernel, described.machine);
        for (const Schedule& schedule : {whole, split})
          EXPECT_EQ(parts(kernel, schedule, described.machine), 0) << described.name << ": " << cpu::describe(schedule);
      }
    }
  }
}

// Stores of whole lines to rows that begin within lines write two lines each. Rows that share a loop store in turns, which
// keeps a core from joining the parts; vectors of less than a line have such stores in any case.
TEST(CostModel, RowsThatBeginWithinLinesDoNotShareALoop) {
  const auto rows_of_a_loop = [](const Shape& shape) {
    return cpu::choose_schedule(layer_norm(shape), xeon().machine, true).rows_together;
  };
  for (const int64_t size : {257, 769, 4093}) EXPECT_EQ(rows_of_a_loop({172000 / size, size}), 1) << size;
  for (const int64_t size : {256, 768, 4096}) EXPECT_GT(rows_of_a_loop({172000 / size, size}), 1) << size;
  EXPECT_GT(rows_of_a_loop({86, 4093, DataType::bf16}), 1);
}

// Vectors of less than a line walk for long enough that memory would be idle, if it were not asked for the next rows then.
TEST(CostModel, NarrowVectorsAskForTheNextRows) {
  Machine narrow = desktop().machine;
  narrow.caches.last = int64_t{32} << 20;
  for (const DataType dtype : {DataType::f32, bf16}) {
    for (const int64_t size : {1024, 2048, 4096}) {
      const Kernel kernel = backward({int64_t{1} << 15, size, dtype});
      Schedule ahead = choice(kernel, narrow);
      ahead.prefetches_rows = true;
      ahead.prefetched_within_row.clear();
      Schedule within = ahead;
      within.prefetches_rows = within.prefetches_late = false;
      within.prefetched_within_row = {0};
      EXPECT_LT(time(kernel, ahead, narrow), time(kernel, within, narrow)) << cpu::describe(ahead);
    }
  }
}

// What is prefetched within a row waits in the first level while the row is walked again.
TEST(CostModel, DistantPrefetchesPushOutWhatIsWalkedAgain) {
  Machine machine = machine_of();
  machine.costs.miss_latency = 0;
  const Kernel kernel = backward({16384, 1024});
  Schedule far, near;
  far.prefetched_within_row = near.prefetched_within_row = cpu::inputs_along_rows(kernel);
  near.ahead_in_row = 2 << 10;
  EXPECT_GT(time(kernel, far, machine), time(kernel, near, machine));
  machine.caches.first = int64_t{128} << 10;
  EXPECT_EQ(time(kernel, far, machine), time(kernel, near, machine)) << "both fit";
}

// Without miss latency, the model chooses no prefetches.
TEST(CostModel, WhatComesFromMemoryIsAskedFor) {
  const Kernel kernel = layer_norm({262144, 64});
  EXPECT_FALSE(choice(kernel).prefetched_within_row.empty());
  EXPECT_TRUE(choice(layer_norm({4096, 64})).prefetched_within_row.empty()) << "in a cache";
  Machine machine = machine_of();
  machine.costs.miss_latency = 0;
  EXPECT_TRUE(choice(kernel, machine).prefetched_within_row.empty());
}

TEST(CostModel, ConversionsThatCostMuchAreKept) {
  const Kernel kernel = layer_norm({4096, 768, bf16});
  Machine machine = machine_of();
  machine.costs.conversion = 5;
  EXPECT_TRUE(choice(kernel, machine).keeps_conversions);
  machine.costs.conversion = 0;
  EXPECT_FALSE(choice(kernel, machine).keeps_conversions);
}

TEST(CostModel, ReductionsThatCostMuchAreTakenTogether) {
  const Kernel kernel = layer_norm({4096, 512});
  Machine machine = machine_of();
  machine.costs.fold = 80;
  EXPECT_EQ(choice(kernel, machine).rows_per_tile, 8);
}

// One row fits the first-level cache; a prefetch of the next row evicts it.
TEST(CostModel, RowsToComePushOutWhatIsWalkedAgain) {
  Machine machine = machine_of();
  machine.caches.first = int64_t{48} << 10;
  const Kernel kernel = layer_norm({1024, 3072});
  Schedule to_first, to_second;
  to_second.prefetches_to_first = false;
  EXPECT_GT(time(kernel, to_first, machine), time(kernel, to_second, machine));
  machine.caches.first = int64_t{128} << 10;
  EXPECT_LE(time(kernel, to_first, machine), time(kernel, to_second, machine)) << "both fit";
}

// gamma and beta exceed the first level: a strip reads them once for several rows if the second level is slow.
TEST(CostModel, StripsKeepWhatRowsShareNear) {
  Machine machine = machine_of();
  machine.costs.read = {0.1, 4, 5, 6};
  EXPECT_GT(choice(layer_norm({4096, 16384, bf16}), machine).strip, 0);
  EXPECT_EQ(choice(layer_norm({8192, 1024, bf16}), machine).strip, 0) << "they fit the first level";
}

// Threads must gain more time than a wait costs.
TEST(CostModel, ThreadsAreWokenForWhatTakesLonger) {
  const auto is_worth = [](const Kernel& kernel, const Machine& machine) {
    return CostModel(kernel, machine).is_worth_threads();
  };
  Machine machine = machine_of();
  EXPECT_FALSE(is_worth(layer_norm({4, 768}), machine));
  EXPECT_TRUE(is_worth(layer_norm({128, 768}), machine));
  machine.costs.wait = 1e6;
  EXPECT_FALSE(is_worth(layer_norm({128, 768}), machine));
}

TEST(CostModel, ShortRowsAreLanesWhereTransposingCostsLittle) {
  Machine machine = machine_of();
  EXPECT_TRUE(choice(layer_norm({65536, 8}), machine).transposed);
  EXPECT_FALSE(choice(layer_norm({65536, 128}), machine).transposed);
  machine.costs.transpose = 50;
  EXPECT_FALSE(choice(layer_norm({65536, 8}), machine).transposed);
}

// Along rows, each row has its own walks.
TEST(CostModel, RowsAreLanesWhereWalksCostMuch) {
  const Kernel short_rows = layer_norm({8640, 31}), longer_rows = layer_norm({8640, 48});
  EXPECT_TRUE(choice(short_rows).transposed);
  EXPECT_FALSE(choice(longer_rows).transposed);
  Machine machine = machine_of();
  machine.costs.walk = 0;
  EXPECT_FALSE(choice(short_rows, machine).transposed);
  machine.costs.walk = 20;
  EXPECT_TRUE(choice(longer_rows, machine).transposed);
}

TEST(CostModel, RowsOfOneElementAreLanes) {
  for (const Kernel& kernel : {layer_norm({8640, 1}), softmax({8640, 1})}) EXPECT_TRUE(choice(kernel).transposed);
}

// The rows along the dim whose elements are contiguous are arranged last, unless transposing costs less.
TEST(CostModel, TheDimOfTheLanesIsWhereRowsAreNeighbours) {
  kernel::Builder builder("blocked", {64, 7, 100}, 2);
  const auto arg = [&](const char* name, bool output) {
    return builder.add_arg({.name = name, .dtype = DataType::f32, .output = output, .strides = {1, 6400, 64}, .table = {}});
  };
  const kernel::Value x = builder.load(arg("src", false));
  builder.store(builder.center(x, builder.moments(x)), arg("dst", true));
  const Kernel kernel = builder.finish();
  const Machine machine = machine_of();
  EXPECT_EQ(cpu::with_rows_arranged(kernel, machine).extents, (Dims{7, 64, 100}));
  EXPECT_TRUE(choice(cpu::with_rows_arranged(kernel, machine), machine).transposed);
}

// gamma varies by channel, so one load serves all of a channel's contiguous elements: lanes stay along the row.
TEST(CostModel, LongRowsOfChannelsAreNoLanes) {
  constexpr int64_t kImages = 8, kGroups = 2, kChannels = 2, kSize = 10000;
  kernel::Builder builder("norm_of_groups", {kImages, kGroups, kChannels, kSize}, 2);
  const auto arg = [&](const char* name, Dims strides, bool output) {
    return builder.add_arg(
        {.name = name, .dtype = DataType::f32, .output = output, .strides = std::move(strides), .table = {}});
  };
  const Dims dense{kGroups * kChannels * kSize, kChannels * kSize, kSize, 1};
  const kernel::Value x = builder.load(arg("src", dense, false)),
                      gamma = builder.load(arg("gamma", {0, kChannels, 1, 0}, false));
  builder.store(builder.center(x, builder.moments(x)) * gamma, arg("dst", dense, true));
  const Kernel kernel = cpu::with_rows_arranged(builder.finish(), machine_of());
  EXPECT_FALSE(choice(kernel).transposed);
}

// All row counts of which the last-level cache holds everything share one schedule, and so do all of which it holds nothing.
TEST(CostModel, OfTheNumberOfRowsTheLastLevelAloneTakesNotice) {
  const Schedule few = choice(layer_norm({256, 768})), many = choice(layer_norm({16384, 768}));
  for (const int64_t rows : {128, 512, 1000, 2048, 2500}) EXPECT_EQ(choice(layer_norm({rows, 768})), few) << rows;
  for (const int64_t rows : {14000, 20000, 100000}) EXPECT_EQ(choice(layer_norm({rows, 768})), many) << rows;
}

TEST(CostModel, MoreRowsTakeLonger) {
  const Schedule schedule = choice(layer_norm({4096, 768}));
  EXPECT_GT(time(layer_norm({8192, 768}), schedule), 1.5 * time(layer_norm({4096, 768}), schedule));
}

}  // namespace
}  // namespace lamina::testing
