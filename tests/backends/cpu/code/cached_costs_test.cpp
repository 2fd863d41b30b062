// The cache of a machine's measured costs: they are read back exactly, and a damaged text is a miss.
#include "backends/cpu/code/cached_costs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/tune/calibrate.h"

namespace lamina::testing {
namespace {

using cpu::Costs;

class CachedCosts : public ::testing::Test {
 protected:
  void SetUp() override { cpu::cached_costs::forget(); }
  void TearDown() override { cpu::cached_costs::forget(); }

  static Costs some() {
    Costs costs;
    double value = 0.1;
    cpu::for_each_cost(costs, [&](const std::string&, double& cost) { cost = value *= 1.7; });
    return costs;
  }
};

TEST_F(CachedCosts, AreReadBackAsWritten) { EXPECT_EQ(cpu::costs_of(cpu::text_of(some())), some()); }

TEST_F(CachedCosts, AreNothingWhereTheTextIsCutOrChanged) {
  const std::string text = cpu::text_of(some());
  for (size_t length = 0; length < text.size(); ++length) EXPECT_FALSE(cpu::costs_of(text.substr(0, length))) << length;
  EXPECT_FALSE(cpu::costs_of(text + "rest"));
  const std::vector<std::pair<std::string, std::string>> changes{{"costs 1", "costs 2"},  {"stream ", "streams "},
                                                                 {"stream ", "stream -"}, {"late ", "late nan"},
                                                                 {"fold ", "fold inf"},   {"wait ", "wait x"}};
  for (const auto& [from, to] : changes) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    EXPECT_FALSE(cpu::costs_of(changed)) << to;
  }
}

TEST_F(CachedCosts, AreFoundForTheirMachineAlone) {
  const cpu::Machine machine = epyc().machine;
  EXPECT_FALSE(cpu::cached_costs::find(machine));
  cpu::cached_costs::store(machine, some());
  EXPECT_EQ(cpu::cached_costs::find(machine), some());
  cpu::Machine fewer = machine, other = machine;
  --fewer.cores;
  other.caches.last += 1;
  EXPECT_FALSE(cpu::cached_costs::find(fewer));
  EXPECT_FALSE(cpu::cached_costs::find(other));
  EXPECT_FALSE(cpu::cached_costs::find(xeon().machine));
}

// Nearer memory costs less, and a disturbed measurement stays within plausible bounds.
TEST_F(CachedCosts, AreMeasuredInTheirOrder) {
  const cpu::Machine machine = cpu::host_machine();
  const Costs costs = cpu::measure_costs(machine);
  for (size_t level = 1; level < costs.read.size(); ++level) EXPECT_GE(costs.read[level], costs.read[level - 1]) << level;
  cpu::for_each_cost(costs, [](const std::string& name, double value) { EXPECT_GT(value, 0) << name; });
  std::vector<double> usual;
  const Costs generic;
  cpu::for_each_cost(generic, [&](const std::string&, double value) { usual.push_back(value); });
  size_t place = 0;
  cpu::for_each_cost(costs, [&](const std::string& name, double value) {
    EXPECT_GT(value, usual[place] / 2.001) << name;
    EXPECT_LT(value, usual[place] * 2.001) << name;
    ++place;
  });
  EXPECT_EQ(cpu::costs_of(cpu::text_of(costs)), costs);
}

}  // namespace
}  // namespace lamina::testing
