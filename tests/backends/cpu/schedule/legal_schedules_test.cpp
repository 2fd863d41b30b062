// Every legal schedule of a kernel gives the interpreter's bits, so measuring may choose any of them.
//
// The test draws a few schedules of each kernel with the seed LAMINA_SCHEDULE_SEED (1 if unset). LAMINA_ALL_SCHEDULES=1 runs
// all of them, LAMINA_ALL_SCHEDULES=3/500 every 500th from the third on: all slices together cover all schedules.
#include "backends/cpu/schedule/legal_schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/schedule/sharing.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/interpreter_bits.h"
#include "backends/cpu/support/scheduled_kernels.h"

namespace lamina::testing {
namespace {

using cpu::Schedule;
using kernel::Kernel;

constexpr size_t kSamples = 24;  // per kernel

uint64_t seed() {
  const char* const text = std::getenv("LAMINA_SCHEDULE_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

// Schedule number i runs if i % slices == slice; without slices, a few are drawn.
struct Slice {
  size_t slice = 0, slices = 0;
};

Slice slice_of_all() {
  const char* const text = std::getenv("LAMINA_ALL_SCHEDULES");
  if (text == nullptr) return {};
  Slice found{0, 1};
  size_t number = 1, count = 1;
  char rest = 0;
  const int read = std::sscanf(text, "%zu/%zu%c", &number, &count, &rest);
  if (read == 2 && number >= 1 && number <= count) found = {number - 1, count};
  EXPECT_TRUE(read == 2 || std::string(text) == "1") << "LAMINA_ALL_SCHEDULES=" << text << ": allowed are 1 and SLICE/SLICES";
  return found;
}

class LegalSchedules : public ::testing::TestWithParam<ScheduledKernel> {};

// ---- the list

std::vector<std::pair<std::string, cpu::Machine>> machines() {
  std::vector<std::pair<std::string, cpu::Machine>> all;
  for (const DescribedMachine& described : described_machines()) all.emplace_back(described.name, described.machine);
  return all;
}

TEST_P(LegalSchedules, AreWalkedOnceEach) {
  const cpu::Machine machine = epyc().machine;
  const Kernel kernel = cpu::with_rows_arranged(GetParam().kernel, machine);
  const cpu::LegalSchedules legal = cpu::legal_schedules(kernel, machine);
  std::set<std::string> seen;
  for (const Schedule& schedule : legal) {
    const std::string text = cpu::describe(schedule);
    ASSERT_TRUE(seen.insert(text).second) << text;
    ASSERT_TRUE(legal.contains(schedule)) << text;
    ASSERT_EQ(cpu::schedule_of(text), schedule) << text;
  }
  EXPECT_GE(seen.size(), 2U);
  RecordProperty("schedules", static_cast<int>(seen.size()));
  std::mt19937_64 random(seed());
  for (size_t i = 0; i < kSamples; ++i) EXPECT_TRUE(seen.contains(cpu::describe(legal.sample(random))));
}

// The list contains the schedule that is chosen without measurements, whole or split, on each machine.
TEST_P(LegalSchedules, HoldWhatIsChosen) {
  for (const auto& [name, machine] : machines()) {
    const Kernel kernel = cpu::with_rows_arranged(GetParam().kernel, machine);
    const cpu::LegalSchedules legal = cpu::legal_schedules(kernel, machine);
    for (const bool may_stream : {false, true}) {
      const Schedule chosen = cpu::choose_schedule(kernel, machine, may_stream);
      EXPECT_TRUE(legal.contains(chosen)) << name << ": " << cpu::describe(chosen);
      EXPECT_TRUE(legal.contains(cpu::without_streaming(chosen)))
          << name << ": " << cpu::describe(cpu::without_streaming(chosen));
      if (chosen.transposed || !cpu::may_be_split(kernel)) continue;
      const Schedule split = cpu::split_schedule(chosen, kernel, machine);
      EXPECT_TRUE(legal.contains(split)) << name << ": " << cpu::describe(split);
    }
  }
}

TEST_P(LegalSchedules, HaveLegalNeighboursThatDiffer) {
  const cpu::Machine machine = epyc().machine;
  const Kernel kernel = cpu::with_rows_arranged(GetParam().kernel, machine);
  const cpu::LegalSchedules legal = cpu::legal_schedules(kernel, machine);
  const Schedule chosen = cpu::choose_schedule(kernel, machine, true);
  const std::vector<Schedule> neighbours = legal.neighbours(chosen);
  EXPECT_FALSE(neighbours.empty());
  for (const Schedule& schedule : neighbours) {
    EXPECT_NE(schedule, chosen);
    EXPECT_TRUE(legal.contains(schedule)) << cpu::describe(schedule);
  }
}

// ---- the bits

// Args that start `offset` elements after a line boundary, so that outputs may be streamed.
class PlacedMemory {
 public:
  PlacedMemory(const Kernel& kernel, const Memory& content, int64_t offset) : kernel_(kernel) {
    for (size_t a = 0; a < kernel.args.size(); ++a) {
      const int64_t skipped = bits_of(kernel.args[a].dtype) < 8 ? 0 : bytes_of(kernel.args[a].dtype, offset);
      std::vector<std::byte>& buffer = buffers_.emplace_back(content[a].size() + 64 + static_cast<size_t>(skipped));
      pointers_.push_back(aligned(buffer) + skipped);
      std::memcpy(pointers_.back(), content[a].data(), content[a].size());
    }
  }
  static std::byte* aligned(std::vector<std::byte>& buffer) {
    return buffer.data() + (64 - reinterpret_cast<uintptr_t>(buffer.data()) % 64) % 64;
  }
  std::span<void* const> pointers() const { return pointers_; }
  Memory taken() const {
    Memory memory;
    for (size_t a = 0; a < pointers_.size(); ++a) {
      const auto* const begin = static_cast<const std::byte*>(pointers_[a]);
      memory.emplace_back(begin, begin + bytes_of(kernel_.args[a].dtype, span(kernel_, kernel_.args[a])));
    }
    return memory;
  }

 private:
  const Kernel& kernel_;
  Memory buffers_;
  std::vector<void*> pointers_;
};

class BitsOfSchedules {
 public:
  explicit BitsOfSchedules(const Kernel& kernel) : kernel_(kernel), initial_(memory_for(kernel)), expected_(initial_) {
    std::vector<kernel::InterpretedArg> args;
    for (size_t a = 0; a < kernel.args.size(); ++a) args.push_back({expected_[a].data(), span(kernel, kernel.args[a])});
    kernel::interpret(kernel, args);
    digest_ = digest(kernel, expected_);
  }

  void expect(const Schedule& schedule, const cpu::Machine& machine, int threads, int64_t offset) const {
    const cpu::KernelRunner runner(kernel_, machine, schedule);
    const PlacedMemory memory(kernel_, initial_, offset);
    std::vector<std::byte> scratch(runner.scratch_bytes() + 64);
    runner.run(memory.pointers(), PlacedMemory::aligned(scratch), cpu::Executor(threads));
    const Memory actual = memory.taken();
    if (digest(kernel_, actual) == digest_) return;
    for (size_t a = 0; a < kernel_.args.size(); ++a) {
      const auto want = values(kernel_, a, expected_[a]), got = values(kernel_, a, actual[a]);
      for (size_t i = 0; i < want.size(); ++i) {
        if (std::bit_cast<uint64_t>(want[i]) == std::bit_cast<uint64_t>(got[i]) || (std::isnan(want[i]) && std::isnan(got[i])))
          continue;
        FAIL() << kernel_.args[a].name << "[" << i << "]: " << got[i] << ", interpreter " << want[i] << "; " << threads
               << " threads, offset " << offset << ", " << cpu::vector_bits(machine) << " bits\n"
               << cpu::describe(schedule) << "\n"
               << kernel::print(kernel_);
      }
    }
  }

 private:
  const Kernel& kernel_;
  Memory initial_, expected_;
  uint64_t digest_ = 0;
};

// Runs the host's instruction sets, with one and several threads, at a line boundary and elsewhere.
TEST_P(LegalSchedules, GiveTheInterpretersBits) {
  const cpu::Machine host = to_run_here(epyc().machine);
  const Kernel arranged = cpu::with_rows_arranged(GetParam().kernel, host);
  const BitsOfSchedules bits(arranged);
  std::vector<cpu::Machine> machines{host};
  for (const cpu::Target* const each : targets_here()) machines.push_back(cpu::capped(host, *each));
  const Slice all = slice_of_all();
  std::mt19937_64 random(seed());
  const auto run = [&](const cpu::Machine& machine, const Schedule& schedule, size_t i) {
    bits.expect(schedule, machine, schedule.split || i % 3 == 0 ? 3 : 1,
                schedule.follows_lines || schedule.realigns ? static_cast<int64_t>(i * 5 % 32) : 0);
  };
  size_t i = 0;
  for (const cpu::Machine& machine : all.slices > 0 ? std::span(machines).subspan(1) : std::span(machines)) {
    const cpu::LegalSchedules legal = cpu::legal_schedules(arranged, machine);
    if (all.slices > 0) {
      for (const Schedule& schedule : legal) {
        if (i++ % all.slices != all.slice) continue;
        ASSERT_NO_FATAL_FAILURE(run(machine, schedule, i / all.slices));
      }
      continue;
    }
    for (size_t n = 0; n < kSamples / std::size(machines); ++n) {
      ASSERT_NO_FATAL_FAILURE(run(machine, legal.sample(random), i++)) << "LAMINA_SCHEDULE_SEED=" << seed();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, LegalSchedules, ::testing::ValuesIn(scheduled_kernels()),
                         [](const auto& test) { return test.param.name; });

// ---- descriptions

TEST(ScheduleText, IsReadBackOrRefused) {
  EXPECT_EQ(cpu::schedule_of(""), Schedule{});
  EXPECT_EQ(cpu::schedule_of("vector_bits 256, streamed 2 3")->streamed, (std::vector{2, 3}));
  for (const char* const text :
       {"vector_bits", "vector_bits x", "vector_bits 256,", "vector_bits 256, ", "width 3", "strip 5 6", "streamed ",
        "streamed 1  2", "split 2", "vector_bits 512", "strip 99999999999999999999", "rows_per_tile 4294967297",
        "strip 512, vector_bits 256", " strip 512", "strip 512 "})
    EXPECT_FALSE(cpu::schedule_of(text)) << text;
}

}  // namespace
}  // namespace lamina::testing
