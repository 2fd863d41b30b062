// A schedule as a value: its description, part of the key of generated code, includes every field.
#include "backends/cpu/schedule/schedule.h"

#include <gtest/gtest.h>

#include <set>

#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/kernels_of_rows.h"

namespace lamina::testing {
namespace {

using cpu::Schedule;

void change(int& field) { ++field; }
void change(int64_t& field) { ++field; }
void change(bool& field) { field = !field; }
void change(std::vector<int>& field) { field.push_back(0); }
void change(std::vector<cpu::LaneStep>& field) { field.push_back(cpu::LaneStep::none); }

TEST(Schedule, EachFieldIsComparedAndDescribed) {
  std::set<std::string> descriptions{cpu::describe(Schedule{})};
  size_t fields = 0;
  Schedule::for_each_field([&](const char* name, const auto& field) {
    Schedule changed;
    change(changed.*field);
    EXPECT_NE(changed, Schedule{}) << name;
    EXPECT_TRUE(descriptions.insert(cpu::describe(changed)).second) << name << ": " << cpu::describe(changed);
    ++fields;
  });
  EXPECT_EQ(descriptions.size(), fields + 1);
}

TEST(Schedule, ListsAreDescribedElementByElement) {
  Schedule one, other;
  one.streamed = {1, 2};
  other.streamed = {12};
  EXPECT_NE(cpu::describe(one), cpu::describe(other));
}

// The choice depends only on the arguments: the same kernel on several machines.
TEST(Schedule, FollowsTheMachineThatItIsGiven) {
  const kernel::Kernel kernel = backward({64, 16384});
  EXPECT_EQ(cpu::choose_schedule(kernel, epyc().machine, true).vector_bits, 512);
  EXPECT_EQ(cpu::choose_schedule(kernel, desktop().machine, true).vector_bits, 256);
  EXPECT_EQ(cpu::choose_schedule(kernel, plain().machine, true).vector_bits, 128);
}

}  // namespace
}  // namespace lamina::testing
