// The checker accepts correct results and detects small errors.
#include "lamina/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/compile.h"
#include "lamina/device_tensors.h"
#include "lamina/fill.h"
#include "lamina/load.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina::driver {
namespace {

using testing::GraphBuilder;
using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32;

// Runs a graph of one partition with the reference backend.
class ReferenceRun {
 public:
  explicit ReferenceRun(const Graph& graph) {
    partitions_ = partition_graph(graph, PartitionPolicy::fusion, reference_backend());
    EXPECT_EQ(partitions_.size(), 1U);
    const auto compiled = compiler::compile_partition(partitions_[0], reference_backend(), &record_);
    for (const ValueIndex input : graph.inputs())
      buffers_[graph.tensor(input).id] = std::make_shared<Buffer>(graph.tensor(input));
    fill_inputs(graph, graph.inputs(), 0, buffers_);
    std::vector<std::shared_ptr<Buffer>> sources;
    for (const LogicalTensor& tensor : compiled->inputs()) sources.push_back(buffers_.at(tensor.id));
    for (const LogicalTensor& tensor : compiled->outputs()) outputs.push_back(std::make_shared<Buffer>(tensor));
    const DeviceTensors tensors(reference_backend(), sources, outputs);
    inputs_ = tensors.inputs();
    Execution(*compiled, tensors).run();
  }
  CheckResult check() const { return check_partition(record_.subgraph, inputs_, outputs); }
  Buffer& input(uint64_t id) { return *buffers_.at(id); }

  std::vector<std::shared_ptr<Buffer>> outputs;

 private:
  std::vector<Partition> partitions_;
  compiler::CompileRecord record_;
  Buffers buffers_;
  std::vector<const void*> inputs_;
};

Graph layer_norm(DataType type) {
  GraphBuilder g;
  g.multi(OpKind::LayerNorm, {g.input(type, {8, 64}), g.input(f32, {64}), g.input(f32, {64})}, {}, {type, f32, f32});
  return g.finish();
}

TEST(Check, PassesTheReferenceItself) {
  for (const DataType type : {f32, DataType::bf16, DataType::f16}) {
    const CheckResult result = ReferenceRun(layer_norm(type)).check();
    EXPECT_TRUE(result.good) << result.text();
    EXPECT_EQ(result.elements, 8 * 64 + 8 + 8);
  }
}

TEST(Check, SeesAnErrorOfAFewUnitsInTheLastPlace) {
  ReferenceRun run(layer_norm(f32));
  const double value = run.outputs[0]->load(70);
  run.outputs[0]->store(70, value + 4e-6 * std::max(1.0, std::abs(value)));
  const CheckResult result = run.check();
  EXPECT_FALSE(result.good);
  EXPECT_EQ(result.failed, 1);
  EXPECT_EQ(result.worst.at, (Dims{1, 6}));
  EXPECT_THAT(result.text(), HasSubstr("1 of 528 elements are WRONG"));
}

// The sum of some six hundred numbers of both signs in f32: it may be small, but its error scales with the summands.
TEST(Check, TakesWhatCancelsForWhatItIs) {
  GraphBuilder g;
  g.multi(OpKind::PReLUBackward, {g.input(f32, {32, 36}), g.input(f32, {1}), g.input(f32, {32, 36})}, {}, {f32, f32});
  ReferenceRun run(g.finish());
  Buffer& diff_slope = *run.outputs[1];
  const double sum = diff_slope.load(0);
  diff_slope.store(0, sum + 1e-6);
  EXPECT_TRUE(run.check().good) << run.check().text();
  diff_slope.store(0, sum + 1e-4);
  EXPECT_FALSE(run.check().good) << run.check().text();
}

TEST(Check, SeesABf16ThatIsTwoStepsOff) {
  ReferenceRun run(layer_norm(DataType::bf16));
  auto* bits = static_cast<uint16_t*>(run.outputs[0]->data());
  bits[5] = static_cast<uint16_t>(bits[5] + 2);
  EXPECT_FALSE(run.check().good);
}

TEST(Check, NaNEqualsNaNAndInfinityEqualsInfinity) {
  GraphBuilder g;
  const auto src = g.input(f32, {4});
  g.op(OpKind::Exp, {src});
  ReferenceRun run(g.finish());
  run.input(src).store(0, std::numeric_limits<double>::quiet_NaN());
  run.input(src).store(1, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(run.check().good);
  run.outputs[0]->store(0, std::numeric_limits<double>::quiet_NaN());
  run.outputs[0]->store(1, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(run.check().good);
  run.outputs[0]->store(2, std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(run.check().good);
}

TEST(Check, QuantisedNeighboursAreFineOnlyAtATie) {
  GraphBuilder g;
  const auto src = g.input(f32, {4});
  g.op(OpKind::Quantize, {src}, {{"scales", std::vector<float>{0.5F}}, {"zps", std::vector<int64_t>{10}}}, DataType::u8);
  ReferenceRun run(g.finish());
  const double values[] = {1.25, 1.3, 2.0, -100};  // the first is a tie: 12.5
  const double given[] = {13, 13, 14, 0};
  for (int64_t i = 0; i < 4; ++i) {
    run.input(src).store(i, values[i]);
    run.outputs[0]->store(i, given[i]);
  }
  EXPECT_TRUE(run.check().good) << run.check().text();
  run.outputs[0]->store(2, 15);
  EXPECT_FALSE(run.check().good);
}

// 300 squared overflows f16: a step that stores it stores an infinity, and a kernel that fuses both ops keeps the number.
TEST(Check, LeavesOutWhatHangsOnAValueThatItsTypeCannotHold) {
  GraphBuilder g;
  const auto src = g.input(DataType::f16, {4}), factor = g.input(DataType::f16, {4});
  g.op(OpKind::Multiply, {g.op(OpKind::Square, {src}, {}, DataType::f16), factor}, {}, DataType::f16);
  ReferenceRun run(g.finish());
  const double values[] = {300, 120, 100, 80};
  for (int64_t i = 0; i < 4; ++i) {
    run.input(src).store(i, values[i]);
    run.input(factor).store(i, 1 / 16.0);
    run.outputs[0]->store(i, values[i] * values[i] / 16);
  }
  EXPECT_TRUE(run.check().good) << run.check().text();
  EXPECT_EQ(run.check().left_out, 0);
  run.outputs[0]->store(0, HUGE_VAL);
  EXPECT_TRUE(run.check().good) << run.check().text();
  EXPECT_THAT(run.check().text(), HasSubstr("1 that depend on values beyond the range of their types"));
  run.outputs[0]->store(1, 1200);
  EXPECT_FALSE(run.check().good);
  EXPECT_EQ(run.check().failed, 1);
}

// 2.5 steps of subnormals, times 3: a step that stores the first product rounds it to 2 steps.
TEST(Check, TakesSubnormalsThatWereStoredBetweenOps) {
  constexpr double kStep = 0x1p-24;
  GraphBuilder g;
  const auto src = g.input(DataType::f16, {4}), half = g.input(DataType::f16, {4}), three = g.input(DataType::f16, {4});
  g.op(OpKind::Multiply, {g.op(OpKind::Multiply, {src, half}, {}, DataType::f16), three}, {}, DataType::f16);
  ReferenceRun run(g.finish());
  for (int64_t i = 0; i < 4; ++i) {
    run.input(src).store(i, 5 * kStep);
    run.input(half).store(i, 0.5);
    run.input(three).store(i, 3);
    run.outputs[0]->store(i, 6 * kStep);
  }
  EXPECT_TRUE(run.check().good) << run.check().text();
  run.outputs[0]->store(1, 20 * kStep);
  EXPECT_FALSE(run.check().good) << run.check().text();
}

// softplus(30) is 30 + 1e-13, which is 30 in f32.
TEST(Check, LeavesOutAComparisonOfWhatTypesDoNotTellApart) {
  GraphBuilder g;
  const auto src = g.input(f32, {4});
  g.op(OpKind::Equal, {g.op(OpKind::SoftPlus, {src}, {{"beta", 1.0F}}), src}, {}, DataType::boolean);
  ReferenceRun run(g.finish());
  for (int64_t i = 0; i < 4; ++i) {
    run.input(src).store(i, i < 2 ? 30 : 1);
    run.outputs[0]->store(i, i < 2 ? 1 : 0);
  }
  EXPECT_TRUE(run.check().good) << run.check().text();
  EXPECT_EQ(run.check().left_out, 2);
  for (const int64_t i : {2, 3}) run.outputs[0]->store(i, 1);
  EXPECT_FALSE(run.check().good);
}

// What is compared, selected, copied or computed with integers has one right result, however small the error of another is.
TEST(Check, WantsTheVeryNumberOfOpsThatRoundNothing) {
  const auto with_one_off = [](OpKind kind, DataType type, DataType result) {
    GraphBuilder g;
    const auto src_0 = g.input(type, {4096}), src_1 = g.input(type, {4096});
    g.op(kind, {src_0, src_1}, {}, result);
    ReferenceRun run(g.finish());
    EXPECT_TRUE(run.check().good) << name_of(kind) << run.check().text();
    const double value = run.outputs[0]->load(7);
    run.outputs[0]->store(7, is_floating(result) ? value * (1 + 0x1p-22) : value == 0 ? 1 : value - 1);
    return run.check();
  };
  const DataType s32 = DataType::s32;
  for (const auto& result : {with_one_off(OpKind::Less, f32, DataType::boolean), with_one_off(OpKind::Maximum, f32, f32),
                             with_one_off(OpKind::Add, s32, s32), with_one_off(OpKind::Equal, s32, DataType::boolean)}) {
    EXPECT_FALSE(result.good);
    EXPECT_THAT(result.text(), HasSubstr("1 of 4096 elements are WRONG"));
  }
}

TEST(Check, TellsIntegersOf64BitsApart) {
  GraphBuilder g;
  g.op(OpKind::StaticReshape, {g.input(DataType::s64, {4})}, {{"shape", std::vector<int64_t>{2, 2}}, {"special_zero", false}},
       DataType::s64);
  ReferenceRun run(g.finish());
  auto* source = static_cast<int64_t*>(run.input(0).data());
  auto* result = static_cast<int64_t*>(run.outputs[0]->data());
  for (int i = 0; i < 4; ++i) source[i] = result[i] = (int64_t{1} << 53) + i;
  EXPECT_TRUE(run.check().good) << run.check().text();
  --result[1];
  EXPECT_FALSE(run.check().good);
}

TEST(Check, SeesTheSignOfAZeroThatIsCopied) {
  GraphBuilder g;
  g.op(OpKind::StaticTranspose, {g.input(f32, {2, 2})}, {{"order", std::vector<int64_t>{1, 0}}});
  ReferenceRun run(g.finish());
  run.input(0).store(0, 0.0);
  run.outputs[0]->store(0, 0.0);
  EXPECT_TRUE(run.check().good) << run.check().text();
  run.outputs[0]->store(0, -0.0);
  EXPECT_FALSE(run.check().good);
}

// -92.5 is the sum in f32; the exact one is a little further from zero.
TEST(Check, TakesTheNeighbourOfAnIntegerNextToATie) {
  GraphBuilder g;
  const auto src_0 = g.input(f32, {2}), src_1 = g.input(DataType::s32, {2});
  g.op(OpKind::Add, {src_0, src_1}, {}, DataType::s32);
  ReferenceRun run(g.finish());
  for (int64_t i = 0; i < 2; ++i) {
    run.input(src_0).store(i, i == 0 ? -0.500001 : -0.6);
    run.input(src_1).store(i, -92);
    run.outputs[0]->store(i, i == 0 ? -92 : -93);
  }
  EXPECT_TRUE(run.check().good) << run.check().text();
  run.outputs[0]->store(1, -92);
  EXPECT_FALSE(run.check().good);
}

// 2^100 squared is an infinity in f32; multiplied by the two small factors first it is a number.
TEST(Check, LeavesOutProductsThatTheirOrderDecides) {
  GraphBuilder g;
  const auto src = g.input(f32, {2, 4});
  g.op(OpKind::ReduceProd, {src}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
  ReferenceRun run(g.finish());
  const double values[] = {0x1p100, 0x1p100, 0, 1, 2, 3, 4, 5};
  for (int64_t i = 0; i < 8; ++i) run.input(src).store(i, values[i]);
  run.outputs[0]->store(0, std::numeric_limits<double>::quiet_NaN());
  run.outputs[0]->store(1, 120);
  EXPECT_TRUE(run.check().good) << run.check().text();
  EXPECT_EQ(run.check().left_out, 1);
  run.outputs[0]->store(1, 121);
  EXPECT_FALSE(run.check().good);
}

// In a row of one element the gradient is what is left of two terms that are a thousand times larger.
TEST(Check, ComparesAGradientWithTheTermsThatCancelInIt) {
  GraphBuilder g;
  const auto src = g.input(f32, {4, 1}), diff_dst = g.input(f32, {4, 1}), gamma = g.input(f32, {1});
  g.multi(OpKind::RMSNormBackward, {src, diff_dst, gamma}, {}, {f32, f32});
  ReferenceRun run(g.finish());
  run.input(gamma).store(0, 1);
  for (int64_t i = 0; i < 4; ++i) {
    run.input(src).store(i, 0.1);
    run.input(diff_dst).store(i, 1);
  }
  const double root = std::sqrt(0.01 + 1e-5), gradient = 1e-5 / (root * root * root);
  for (int64_t i = 0; i < 4; ++i) run.outputs[0]->store(i, gradient + (i == 0 ? 4e-7 / root : 0));
  run.outputs[1]->store(0, 4 * 0.1 / root);
  EXPECT_TRUE(run.check().good) << run.check().text();
  run.outputs[0]->store(0, gradient + 4e-5 / root);
  EXPECT_FALSE(run.check().good);
}

// Each product is the middle between two integers, and half of the elements come from one just above it.
TEST(Check, TakesEitherSideOfATieInEachElement) {
  constexpr int64_t kCount = 2000;
  GraphBuilder g;
  const auto src_0 = g.input(f32, {kCount}), src_1 = g.input(f32, {kCount});
  g.op(OpKind::Round, {g.op(OpKind::Multiply, {src_0, src_1})});
  ReferenceRun run(g.finish());
  for (int64_t i = 0; i < kCount; ++i) {
    run.input(src_0).store(i, 100.5);
    run.input(src_1).store(i, 1);
    run.outputs[0]->store(i, i % 2 == 0 ? 100 : 101);
  }
  EXPECT_TRUE(run.check().good) << run.check().text();
  for (int64_t i = 0; i < 4; ++i) run.outputs[0]->store(i, 120);
  EXPECT_THAT(run.check().text(), HasSubstr("4 of 2000 elements are WRONG"));
}

// The differences are what rounding errors leave of 0.
TEST(Check, TakesZeroForWhatRoundingErrorsLeaveOfIt) {
  GraphBuilder g;
  const auto src = g.input(f32, {8, 1}), diff_dst = g.input(f32, {8, 1});
  g.op(OpKind::TypeCast, {g.op(OpKind::LogSoftmaxBackward, {diff_dst, src})}, {}, DataType::boolean);
  ReferenceRun run(g.finish());
  for (int64_t i = 0; i < 8; ++i) {
    run.input(diff_dst).store(i, 1);
    run.input(src).store(i, 1e-7);
    run.outputs[0]->store(i, 0);
  }
  EXPECT_TRUE(run.check().good) << run.check().text();
  for (int64_t i = 0; i < 8; ++i) run.input(src).store(i, 1e-3);
  EXPECT_FALSE(run.check().good);
}

TEST(Check, TakesEitherSignOfAZeroThatIsComputed) {
  GraphBuilder g;
  const auto src = g.input(f32, {8});
  g.op(OpKind::Reciprocal, {g.op(OpKind::ReLU, {src})});
  ReferenceRun run(g.finish());
  for (int64_t i = 0; i < 8; ++i) {
    run.input(src).store(i, -0.0);
    run.outputs[0]->store(i, i % 2 == 0 ? HUGE_VAL : -HUGE_VAL);
  }
  EXPECT_TRUE(run.check().good) << run.check().text();
}

// One element is next to the pole of 1 / x, and says nothing of the others.
TEST(Check, JudgesEachElementByHowFarItsOwnInputsMoveIt) {
  GraphBuilder g;
  const auto src_0 = g.input(f32, {64}), src_1 = g.input(f32, {64});
  g.op(OpKind::Reciprocal, {g.op(OpKind::Subtract, {src_0, src_1})});
  ReferenceRun run(g.finish());
  for (int64_t i = 0; i < 64; ++i) {
    run.input(src_0).store(i, 3);
    run.input(src_1).store(i, i == 5 ? 3 - 0x1p-21 : 1);
    run.outputs[0]->store(i, i == 5 ? 0x1p21 : 0.5);
  }
  EXPECT_TRUE(run.check().good) << run.check().text();
  run.outputs[0]->store(5, HUGE_VAL);
  EXPECT_TRUE(run.check().good) << run.check().text();
  run.outputs[0]->store(6, 0.9);
  run.outputs[0]->store(7, 0.9);
  const CheckResult result = run.check();
  EXPECT_FALSE(result.good);
  EXPECT_THAT(result.text(), HasSubstr("2 of 64 elements are WRONG"));
}

}  // namespace
}  // namespace lamina::driver
