// Profiles: which times are counted, and the three forms.
#include "compiler/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <sstream>
#include <string>

#include "compiler/compile.h"
#include "passes/pipeline.h"
#include "support/convolution_graphs.h"
#include "support/graph_builder.h"

namespace lamina::compiler {
namespace {

using ::testing::EndsWith;
using testing::GraphBuilder;
using Json = nlohmann::json;
constexpr DataType f32 = DataType::f32;
constexpr MachineLimits kLimits{.threads = 2, .read_bytes_per_second = 10e9, .operations_per_second = 100e9};

// MatMul -> SoftMax over all rows: two steps or one chain.
class Profiled {
 public:
  Profiled() {
    GraphBuilder g;
    const auto product = g.op(OpKind::MatMul, {g.input(f32, {64, 32}), g.input(f32, {32, 48})});
    g.op(OpKind::SoftMax, {product}, {{"axis", int64_t{0}}});
    for (const Partition& partition : partition_graph(g.finish(), PartitionPolicy::fusion, cpu_backend()))
      compiled_.push_back(compile_partition(partition, cpu_backend()));
    memory_.resize(64 * 48, 1.0f);
  }
  void run(int times) {
    for (int i = 0; i < times; ++i) {
      for (const auto& partition : compiled_) {
        std::vector<BoundTensor> inputs, outputs;
        for (const LogicalTensor& tensor : partition->inputs()) inputs.push_back({&tensor, memory_.data()});
        for (const LogicalTensor& tensor : partition->outputs())
          outputs.push_back({&tensor, out_.emplace_back(64 * 48).data()});
        profile.execute(*partition, {}, inputs, outputs);
      }
    }
  }
  Profile profile;

 private:
  std::vector<std::unique_ptr<const CompiledPartition>> compiled_;
  std::vector<float> memory_;
  std::vector<std::vector<float>> out_;
};

TEST(Profile, StepsAndIdleTimeMakeUpAnExecution) {
  Profiled profiled;
  profiled.run(9);
  const auto partitions = summary_of(profiled.profile, kLimits);
  ASSERT_FALSE(partitions.empty());
  for (const PartitionProfile& partition : partitions) {
    EXPECT_EQ(partition.executions, 9);
    double busy = 0, idle = 0;
    for (const StepProfile& step : partition.steps) {
      EXPECT_GT(step.microseconds, 0);
      EXPECT_GE(step.idle_microseconds, 0);
      EXPECT_EQ(step.runs, 1);
      busy += step.microseconds;
      idle += step.idle_microseconds;
    }
    EXPECT_LE(busy + idle, partition.microseconds * (1 + 1e-9));
    EXPECT_NEAR(busy + partition.idle_microseconds, partition.microseconds, 1e-6 * partition.microseconds);
  }
}

// GELU, which is too long for the convolution's registers, runs on parts of its result.
TEST(Profile, AKernelThatFollowsPartsHasATimeOfItsOwn) {
  GraphBuilder g;
  const testing::ConvolutionCase convolution{.src_channels = 16, .dst_channels = 64, .space = {32, 32}};
  g.op(OpKind::GELU, {testing::add_op(g, convolution)});
  const auto compiled =
      compile_partition(partition_graph(g.finish(), PartitionPolicy::fusion, cpu_backend()).at(0), cpu_backend());
  std::vector<std::vector<float>> memory;
  std::vector<BoundTensor> inputs, outputs;
  for (const LogicalTensor& tensor : compiled->inputs())
    inputs.push_back({&tensor, memory.emplace_back(tensor.element_count(), 1.0f).data()});
  for (const LogicalTensor& tensor : compiled->outputs())
    outputs.push_back({&tensor, memory.emplace_back(tensor.element_count()).data()});
  Profile profile;
  for (int i = 0; i < 5; ++i) profile.execute(*compiled, {}, inputs, outputs);
  const std::vector<PartitionProfile> partitions = summary_of(profile, kLimits);
  ASSERT_EQ(partitions.size(), 1u);
  ASSERT_EQ(partitions[0].steps.size(), 2u);
  for (const StepProfile& step : partitions[0].steps) {
    EXPECT_GT(step.microseconds, 0) << step.work.name;
    EXPECT_EQ(step.runs, 1) << step.work.name;
    EXPECT_GT(step.bound_microseconds, 0) << step.work.name;
  }
}

TEST(Profile, TheBoundIsTheLongerOfMemoryAndArithmetic) {
  Profiled profiled;
  profiled.run(1);
  for (const auto& limits : {kLimits, MachineLimits{1, 1e12, 1e6}}) {
    for (const PartitionProfile& partition : summary_of(profiled.profile, limits)) {
      for (const StepProfile& step : partition.steps) {
        const double memory = 1e6 * static_cast<double>(step.work.bytes) / limits.read_bytes_per_second;
        const double arithmetic = 1e6 * step.work.arithmetic / limits.operations_per_second;
        EXPECT_DOUBLE_EQ(step.bound_microseconds, std::max(memory, arithmetic));
        EXPECT_EQ(step.is_bound_by_memory, memory >= arithmetic);
      }
    }
  }
}

TEST(Profile, ThePartitionsOfAnotherShapeAreCountedApart) {
  Profile profile;
  for (const int64_t rows : {4, 8}) {
    GraphBuilder g;
    g.op(OpKind::Abs, {g.input(f32, {rows, 4})});
    const auto compiled =
        compile_partition(partition_graph(g.finish(), PartitionPolicy::fusion, cpu_backend()).at(0), cpu_backend());
    std::vector<float> in(32), out(32);
    const BoundTensor input{&compiled->inputs()[0], in.data()}, output{&compiled->outputs()[0], out.data()};
    profile.execute(*compiled, {}, {&input, 1}, {&output, 1});
  }
  EXPECT_EQ(profile.partitions().size(), 2u);
}

TEST(Profile, TheTableFits80ColumnsAndStartsWithTheVerdict) {
  Profiled profiled;
  profiled.run(3);
  for (const std::string& title : {std::string("a.json"), std::string(200, 'x') + ".json"}) {
    std::istringstream lines(profile_table(profiled.profile, kLimits, title));
    std::string line, first;
    for (int number = 0; std::getline(lines, line); ++number) {
      if (number == 0) first = line;
      EXPECT_LE(line.size(), 80u) << line;
    }
    EXPECT_THAT(first, EndsWith(" idle"));
    EXPECT_NE(first.find(".json: "), std::string::npos) << first;
  }
}

TEST(Profile, TheJsonHasWhatTheTableHas) {
  Profiled profiled;
  profiled.run(3);
  const Json json = Json::parse(profile_json(profiled.profile, kLimits, "a.json"));
  EXPECT_EQ(json.at("title"), "a.json");
  EXPECT_EQ(json.at("machine").at("threads"), 2);
  EXPECT_DOUBLE_EQ(json.at("machine").at("read_gb_per_s"), 10);
  double steps = 0, total = 0;
  for (const Json& partition : json.at("partitions")) {
    total += partition.at("us").get<double>();
    for (const Json& step : partition.at("steps")) {
      steps += step.at("us").get<double>();
      EXPECT_GT(step.at("bytes").get<int64_t>(), 0);
      EXPECT_FALSE(step.at("name").get<std::string>().empty());
    }
  }
  EXPECT_LE(steps, total);
  EXPECT_NEAR(json.at("us").get<double>(), total, 1e-6 * total);
}

TEST(Profile, TheTraceHasAnEventForEachStepOfEachExecution) {
  Profiled profiled;
  profiled.run(3);
  size_t steps = 0;
  for (const auto& partition : profiled.profile.partitions()) steps += 3 * partition.steps.size();
  const Json trace = Json::parse(profile_trace(profiled.profile));
  size_t events = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++events;
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GE(event.at("dur").get<double>(), 0);
  }
  EXPECT_EQ(events, steps);
}

TEST(Profile, TheMachineHasLimitsThatAreMeasuredOnce) {
  const MachineLimits* const limits = cpu_backend().limits();
  ASSERT_NE(limits, nullptr);
  EXPECT_EQ(limits, cpu_backend().limits());
  EXPECT_GT(limits->read_bytes_per_second, 1e8);
  EXPECT_GT(limits->operations_per_second, 1e8);
  EXPECT_EQ(reference_backend().limits(), nullptr);
}

}  // namespace
}  // namespace lamina::compiler
