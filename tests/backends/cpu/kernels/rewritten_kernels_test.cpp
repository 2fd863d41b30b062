// The planner's rewrites for the CPU change no bits: values shared by all rows are precomputed, and copies use whole words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backends/backend.h"
#include "backends/cpu/support/cpu_check.h"
#include "kernels/plan.h"
#include "passes/fusion/fuse.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using kernel::KernelStep;
using kernel::Plan;
using kernel::PlanTarget;

constexpr DataType f32 = DataType::f32, f64 = DataType::f64, s8 = DataType::s8;

PlanTarget with(bool computes_ahead, bool copies_in_words) {
  PlanTarget target = *cpu_backend().plan_target();
  target.computes_ahead = computes_ahead;
  target.copies_in_words = copies_in_words;
  return target;
}

Plan plan_of(const Graph& graph, const PlanTarget& target) {
  const std::vector<FusionGroup> groups = fuse(graph, std::vector<bool>(graph.ops().size(), true), true);
  return kernel::make_plan(graph, graph.inputs(), graph.outputs(), groups, one_by_one(groups.size()), target);
}

// Inputs of random bytes; floats may be NaN or infinite.
std::vector<std::vector<std::byte>> random_bytes(const Graph& graph, bool are_numbers) {
  std::vector<std::vector<std::byte>> all;
  uint32_t state = 1;
  for (const ValueIndex value : graph.inputs()) {
    const LogicalTensor& tensor = graph.tensor(value);
    std::vector<std::byte>& bytes = all.emplace_back(static_cast<size_t>(tensor.byte_size()));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
    if (!are_numbers) continue;
    for (int64_t i = 0; i < tensor.element_count(); ++i) {
      const auto positive = static_cast<double>((state = state * 1664525 + 1013904223) >> 20) / 1000 + 0.001;
      store_from_double(tensor.dtype, bytes.data(), i, positive);
    }
  }
  return all;
}

std::vector<std::byte> result_of(const Graph& graph, Plan plan, const std::vector<std::vector<std::byte>>& inputs) {
  const auto executable = cpu_backend().compile(std::make_shared<const Plan>(std::move(plan)));
  std::vector<const void*> in;
  for (const auto& bytes : inputs) in.push_back(bytes.data());
  std::vector<std::byte> result(static_cast<size_t>(graph.tensor(graph.outputs()[0]).byte_size()));
  void* const out[] = {result.data()};
  executable->execute({}, in, out);
  return result;
}

// Returns the number of kernels of both plans; their results have the same bits.
std::pair<size_t, size_t> steps_with_same_bits(const Graph& graph, const PlanTarget& one, const PlanTarget& other,
                                               bool are_numbers = true) {
  const Plan first = plan_of(graph, one), second = plan_of(graph, other);
  const auto inputs = random_bytes(graph, are_numbers);
  EXPECT_TRUE(result_of(graph, first, inputs) == result_of(graph, second, inputs));
  return {first.steps.size(), second.steps.size()};
}

Graph channels_last_norm(DataType dtype, int64_t rows) {
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, 3, 70});
  std::vector<uint64_t> inputs{x};
  for (int i = 0; i < 4; ++i) inputs.push_back(g.input(dtype, {70}));
  const auto y = g.op(OpKind::BatchNormInference, inputs, {{"epsilon", 0.01F}, {"data_format", std::string("NXC")}});
  g.op(OpKind::Multiply, {y, g.op(OpKind::Sigmoid, {inputs[1]})});
  return with_strides(g.finish());
}

TEST(SharedValues, AreTakenAheadWithTheSameBits) {
  for (const DataType dtype : {f32, f64})
    EXPECT_EQ(steps_with_same_bits(channels_last_norm(dtype, 100), with(true, true), with(false, true)), (std::pair{2UL, 1UL}));
}

TEST(SharedValues, FewRowsTakeThemThemselves) {
  EXPECT_EQ(plan_of(channels_last_norm(f32, 2), with(true, true)).steps.size(), 1U);
}

TEST(SharedValues, TheRowsLoadThemAndDivideNoMore) {
  const Plan plan = plan_of(channels_last_norm(f32, 100), with(true, true));
  const kernel::Kernel &ahead = std::get<KernelStep>(plan.steps[0]).kernel, &rows = std::get<KernelStep>(plan.steps[1]).kernel;
  EXPECT_EQ(ahead.row_count(), 1);
  EXPECT_EQ(rows.row_count(), 300);
  for (const kernel::Node& node : rows.nodes) {
    const bool is_expensive =
        node.op == kernel::MapOp::divide || node.op == kernel::MapOp::square_root || node.op == kernel::MapOp::sigmoid;
    EXPECT_FALSE(node.kind == kernel::NodeKind::map && is_expensive);
  }
  EXPECT_EQ(plan.arena_bytes, 2U * 320);  // the factor and the sigmoid, 70 floats each, at multiples of 64 bytes
}

// Each row of a softmax has its own sum, so rows share nothing.
TEST(SharedValues, SumsOfRowsAreNotShared) {
  GraphBuilder g;
  g.op(OpKind::SoftMax, {g.input(f32, {100, 64})}, {{"axis", int64_t{1}}});
  EXPECT_EQ(plan_of(with_strides(g.finish()), with(true, true)).steps.size(), 1U);
}

Graph joined(DataType dtype, int64_t first, int64_t second) {
  GraphBuilder g;
  const auto x = g.input(dtype, {9, first}), y = g.input(dtype, {9, second});
  g.op(OpKind::Concat, {x, y}, {{"axis", int64_t{1}}});
  return with_strides(g.finish());
}

const kernel::Kernel& kernel_of(const Plan& plan, size_t step) { return std::get<KernelStep>(plan.steps.at(step)).kernel; }

TEST(CopiesInWords, MoveEveryBit) {
  for (const DataType dtype : {s8, DataType::u8, DataType::f8_e4m3, DataType::bf16, DataType::f16}) {
    SCOPED_TRACE(name_of(dtype));
    const Graph graph = joined(dtype, 12, 20);
    const Plan plan = plan_of(graph, with(true, true));
    EXPECT_EQ(kernel_of(plan, 0).args[0].dtype, DataType::s32);
    EXPECT_EQ(kernel_of(plan, 0).row_size(), 12 * bits_of(dtype) / 32);
    EXPECT_EQ(kernel_of(plan, 1).row_size(), 20 * bits_of(dtype) / 32);
    const auto inputs = random_bytes(graph, false);
    const std::vector<std::byte> result = result_of(graph, plan, inputs);
    const size_t bytes = static_cast<size_t>(bits_of(dtype)) / 8;
    for (size_t row = 0; row < 9; ++row) {
      EXPECT_EQ(std::memcmp(&result[row * 32 * bytes], &inputs[0][row * 12 * bytes], 12 * bytes), 0);
      EXPECT_EQ(std::memcmp(&result[(row * 32 + 12) * bytes], &inputs[1][row * 20 * bytes], 20 * bytes), 0);
    }
  }
}

TEST(CopiesInWords, AreThoseOfElementsForIntegers) {
  EXPECT_EQ(steps_with_same_bits(joined(s8, 64, 128), with(true, true), with(true, false), false), (std::pair{2UL, 2UL}));
}

TEST(CopiesInWords, RunsThatAreNoWholeWordsStayAsTheyAre) {
  const Plan plan = plan_of(joined(s8, 12, 21), with(true, true));
  EXPECT_EQ(kernel_of(plan, 0).args[0].dtype, s8);
  EXPECT_EQ(kernel_of(plan, 1).args[0].dtype, s8);
}

}  // namespace
}  // namespace lamina::testing
