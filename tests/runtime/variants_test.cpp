// Models with several variants, one for each list of input shapes, and models of several partitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "backends/exported_model.h"
#include "runtime/exported_graph.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32;

Graph mlp(int64_t batch) {
  GraphBuilder g;
  const auto x = g.input(f32, {batch, 5, 32});
  const auto hidden = g.op(OpKind::GELU, {g.op(OpKind::MatMul, {x, g.constant(f32, {32, 64})})});
  const auto back = g.op(OpKind::MatMul, {hidden, g.constant(f32, {64, 32})});
  g.multi(OpKind::LayerNorm, {g.op(OpKind::Add, {back, x}), g.constant(f32, {32}), g.constant(f32, {32})},
          {{"keep_stats", false}}, {f32});
  return g.finish();
}

// The variants share weights, which each ExportedGraph fills alike.
ModelBytes model_of(const std::vector<int64_t>& batches) {
  std::vector<Graph> graphs;
  for (const int64_t batch : batches) graphs.push_back(mlp(batch));
  const ExportedGraph weights(mlp(1));
  return exported(graphs, {.isas = cpu_isas_here(), .weights = weights.weights()});
}

TEST(Variants, GiveTheBitsOfTheLibraryForEachOfTheirShapes) {
  const std::vector<int64_t> batches = {1, 2, 3, 16, 100};
  const ModelBytes file = model_of(batches);
  const runtime::model model = file.load();
  EXPECT_EQ(model.variant_count(), batches.size());
  for (const int64_t batch : batches) {
    ExportedGraph graph(mlp(batch));
    EXPECT_EQ(graph.difference(model, {2}), "") << batch;
  }
}

// Shown by weights that change after they were packed, which no caller may do.
TEST(Variants, PackTheSameWeightsOnce) {
  GraphBuilder small, large;
  for (auto* const g : {&small, &large})
    g->op(OpKind::MatMul, {g->input(f32, {g == &small ? 64 : 96, 256}), g->constant(f32, {256, 256})});
  const std::vector<Graph> graphs = {small.finish(), large.finish()};
  const ExportedGraph weights(graphs[0]);
  const ModelBytes file = exported(graphs, {.isas = cpu_isas_here(), .weights = weights.weights()});
  const runtime::model model = file.load();
  ExportedGraph first(graphs[0]), second(graphs[1]);
  EXPECT_EQ(first.difference(model, {1}), "");
  const std::string_view data = weights.weights().begin()->second;
  const size_t place = file.text().find(data);
  ASSERT_NE(place, std::string::npos);
  std::memset(const_cast<char*>(static_cast<const char*>(file.data())) + place, 0, data.size());
  EXPECT_EQ(second.difference(model, {1}), "");
}

TEST(Variants, AreDescribedTogetherAndOneByOne) {
  const ModelBytes file = model_of({2, 7});
  const runtime::model model = file.load();
  EXPECT_EQ(model.inputs()[0].shape, (runtime::dims{LAMINA_RUNTIME_DYNAMIC, 5, 32}));
  EXPECT_EQ(model.inputs()[0].strides, (runtime::dims{160, 32, 1}));
  EXPECT_EQ(model.inputs(1)[0].shape, (runtime::dims{7, 5, 32}));
  EXPECT_EQ(model.outputs(0)[0].shape, (runtime::dims{2, 5, 32}));
  EXPECT_THROW(model.inputs(2), runtime::error);
}

TEST(Variants, RefuseOtherShapesWithAllTheyHave) {
  const ModelBytes file = model_of({2, 7});
  const runtime::model model = file.load();
  std::vector<runtime::tensor> inputs = model.inputs(), outputs = model.outputs(1);
  inputs[0].shape = {3, 5, 32};
  try {
    model.run(inputs, outputs);
    FAIL() << "it ran";
  } catch (const runtime::error& error) {
    EXPECT_STREQ(error.what(), "the inputs are f32[3, 5, 32], the model has shapes [2, 5, 32]; [7, 5, 32]");
  }
}

TEST(Partitions, PassValuesThroughTheArena) {
  ExportedGraph graph(mlp(9), {}, false, PartitionPolicy::debug);
  EXPECT_EQ(graph.difference({2}), "");
  EXPECT_EQ(graph.difference({1, 1}), "");
}

}  // namespace
}  // namespace lamina::testing
