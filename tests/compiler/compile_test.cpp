// compile merges the graph's description of a port with the given one; and the contents of a compile record.
#include "compiler/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/partitioning.h"
#include "interface/status.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina::compiler {
namespace {

using testing::GraphBuilder;
using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32;

LogicalTensor tensor(uint64_t id, Dims shape) {
  LogicalTensor tensor;
  tensor.id = id;
  tensor.dtype = f32;
  tensor.shape = std::move(shape);
  return tensor;
}

// dst = Abs(src), with this shape of src in the graph.
Partition abs_of(const Dims& shape) {
  GraphBuilder g;
  g.op(OpKind::Abs, {g.input(f32, shape)});
  return partition_graph(g.finish(), PartitionPolicy::fusion, cpu_backend()).at(0);
}

TEST(Compile, AShapeIsWhatTheGraphAndTheCallerKnowTogether) {
  const Partition partition = abs_of({2, kUnknownDim});
  const LogicalTensor src = tensor(0, {kUnknownDim, 3}), dst = tensor(1, {kUnknownDim, kUnknownDim});
  const auto compiled = compile_partition(partition, {{src}}, {{dst}}, cpu_backend());
  EXPECT_EQ(compiled->inputs().at(0).shape, (Dims{2, 3}));
  EXPECT_EQ(compiled->outputs().at(0).shape, (Dims{2, 3}));
  EXPECT_EQ(compiled->outputs().at(0).strides, (Dims{3, 1}));
}

TEST(Compile, ShapesThatDisagreeAreRefused) {
  const Partition partition = abs_of({2, kUnknownDim});
  for (const Dims& given : {Dims{3, 3}, Dims{2}, Dims{2, kUnknownDim}}) {
    try {
      compile_partition(partition, {{tensor(0, given)}}, {{tensor(1, {2, 3})}}, cpu_backend());
      ADD_FAILURE() << describe(given) << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_shape);
      EXPECT_THAT(error.what(), HasSubstr("input 0 is f32[")) << error.what();
    }
  }
}

TEST(Compile, ARecordHoldsTheFusionThatRuns) {
  GraphBuilder g;
  const auto x = g.input(f32, {kUnknownDim, 64});
  g.op(OpKind::ReLU, {g.op(OpKind::LayerNorm, {x}, {{"use_affine", false}, {"keep_stats", false}})});
  const Partition partition = partition_graph(g.finish(), PartitionPolicy::fusion, cpu_backend()).at(0);
  CompileRecord record;
  const auto compiled = compile_partition(partition, {{tensor(0, {5, 64})}}, {{tensor(2, {5, 64})}}, cpu_backend(), &record);
  ASSERT_EQ(record.groups.size(), 1u);
  EXPECT_EQ(record.groups[0].extents, (Dims{5, 64}));
  EXPECT_THAT(record.groups[0].reasons.at(0).at(0).text, HasSubstr("its loop nest runs over [5, 64]"));
  EXPECT_EQ(record.subgraph.graph.ops().size(), 2u);
  EXPECT_EQ(compiled->info().kernels.size(), 1u);
}

TEST(Compile, ABackendThatRunsGraphsGetsTheGraph) {
  const Partition partition = abs_of({2, 3});
  CompileRecord record;
  EXPECT_EQ(compile_partition(partition, reference_backend(), &record)->info().backend, "reference");
  EXPECT_TRUE(record.groups.empty());
  EXPECT_EQ(record.subgraph.graph.ops().size(), 1u);
  EXPECT_THROW(reference_backend().compile(nullptr), Error);
  EXPECT_THROW(cpu_backend().compile_graph(record.subgraph), Error);
}

}  // namespace
}  // namespace lamina::compiler
