// Executions of graphs in which parts of concatenations are in the memory of the result.
#include "kernels/joined_values.h"

#include <gtest/gtest.h>

#include <vector>

#include "backends/backend.h"
#include "compiler/compile.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina::compiler {
namespace {

using testing::GraphBuilder;
constexpr DataType f32 = DataType::f32;

uint64_t concat(GraphBuilder& g, const std::vector<uint64_t>& parts, int64_t axis) {
  return g.op(OpKind::Concat, parts, {{"axis", axis}});
}

// The result of the last of several executions on the CPU. Inputs that are not constant are multiplied by the execution's
// factor.
std::vector<float> run(const Graph& graph, const std::vector<float>& factors) {
  const std::vector<Partition> partitions = partition_graph(graph, PartitionPolicy::fusion, cpu_backend());
  EXPECT_EQ(partitions.size(), 1u);
  const auto compiled = compile_partition(partitions.at(0), cpu_backend());
  std::vector<float> out(static_cast<size_t>(compiled->outputs().at(0).element_count()));
  for (const float factor : factors) {
    std::vector<std::vector<float>> memory;
    std::vector<BoundTensor> inputs;
    for (const LogicalTensor& tensor : compiled->inputs()) {
      memory.emplace_back(static_cast<size_t>(tensor.element_count()));
      for (size_t i = 0; i < memory.back().size(); ++i)
        memory.back()[i] = (static_cast<float>(i % 7) - 3) * (tensor.property == PropertyType::constant ? 1 : factor);
    }
    for (size_t t = 0; t < memory.size(); ++t) inputs.push_back({&compiled->inputs()[t], memory[t].data()});
    const BoundTensor output{&compiled->outputs()[0], out.data()};
    compiled->execute({}, inputs, {&output, 1});
  }
  return out;
}

// Weights of which a part is constant are not packed once: the other part differs from one execution to the next.
TEST(JoinedValues, WeightsWithAConstantPartAreReadInEveryExecution) {
  for (const bool is_first : {true, false}) {
    GraphBuilder g;
    const auto x = g.constant(f32, {8, 6}), variable = g.op(OpKind::Abs, {g.input(f32, {4, 16})}),
               constant = g.constant(f32, {2, 16});
    g.op(OpKind::MatMul, {x, is_first ? concat(g, {constant, variable}, 0) : concat(g, {variable, constant}, 0)});
    const Graph graph = g.finish();
    EXPECT_EQ(run(graph, {1, 2}), run(graph, {2}));
    EXPECT_NE(run(graph, {1}), run(graph, {2}));
  }
}

// A kernel that reads a part of its input writes a part of the result, not its first bytes.
TEST(JoinedValues, AKernelThatReadsASliceWritesToItsPlace) {
  GraphBuilder g;
  const auto product = g.op(OpKind::MatMul, {g.input(f32, {4, 2}), g.input(f32, {2, 16})});
  std::vector<uint64_t> parts;
  for (const int64_t row : {3, 1, 0}) {
    const auto slice = g.op(OpKind::Slice, {product},
                            {{"starts", std::vector<int64_t>{row}},
                             {"ends", std::vector<int64_t>{row + 1}},
                             {"axes", std::vector<int64_t>{0}},
                             {"steps", std::vector<int64_t>{1}}});
    parts.push_back(g.op(OpKind::Square, {slice}));
  }
  concat(g, parts, 0);
  const auto element = [](size_t i) { return static_cast<float>(i % 7) - 3; };
  std::vector<float> expected;
  for (const size_t row : {3, 1, 0}) {
    for (size_t column = 0; column < 16; ++column) {
      const float sum = element(2 * row) * element(column) + element(2 * row + 1) * element(16 + column);
      expected.push_back(sum * sum);
    }
  }
  EXPECT_EQ(run(g.finish(), {1}), expected);
}

}  // namespace
}  // namespace lamina::compiler
