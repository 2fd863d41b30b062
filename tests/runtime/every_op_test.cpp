// Every op that the CPU runs can be exported: the example of each schema, pools and resamplings in all layouts, products of
// groups, and tensors without elements.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "interface/op_schema.h"
#include "lamina/op_examples.h"
#include "runtime/exported_graph.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;

// The bits of the library, which may run some ops by oneDNN, or else of the same primitives in this process.
void expect_same_bits(Graph graph) {
  ExportedGraph exported(std::move(graph));
  if (exported.difference({1, 0}).empty()) return;
  exported.compare_with(*backend_like_exported());
  for (const int threads : {1, 3})
    for (const size_t shift : {0, 1}) EXPECT_EQ(exported.difference({threads, shift}), "") << threads << " " << shift;
}

TEST(EveryOp, CanBeExported) {
  for (const OpKind kind : all_op_kinds()) {
    if (!driver::has_example(schema_of(kind))) continue;
    SCOPED_TRACE(name_of(kind));
    expect_same_bits(driver::example_graph(schema_of(kind)));
  }
}

struct Image {
  Dims shape;
  bool channels_last;
};

// Few and many channels; pixels and channels that are contiguous.
const std::vector<Image> kImages = {
    {{2, 5, 13, 11}, false}, {{2, 9, 12, 40}, true}, {{2, 33, 17, 60}, false}, {{1, 3, 20}, false}, {{1, 6, 7, 8, 9}, false}};

Attributes window_of(const Image& image, int64_t kernel) {
  const size_t axes = image.shape.size() - 2;
  return {{"kernel", Dims(axes, kernel)},
          {"strides", Dims(axes, 2)},
          {"pads_begin", Dims(axes, 1)},
          {"pads_end", Dims(axes, 1)},
          {"data_format", std::string(image.channels_last ? "NXC" : "NCX")}};
}

TEST(EveryOp, PoolsOfEveryLayout) {
  for (const Image& image : kImages) {
    for (const DataType dtype : {f32, bf16, f16}) {
      for (const int64_t kernel : {3, 7}) {
        SCOPED_TRACE(join(describe(image.shape), " ", name_of(dtype), " ", kernel));
        GraphBuilder g;
        const auto x = g.input(dtype, image.shape);
        Attributes average = window_of(image, kernel);
        average["exclude_pad"] = true;
        g.op(OpKind::MaxPool, {x}, window_of(image, kernel));
        g.op(OpKind::AvgPool, {x}, average);
        expect_same_bits(g.finish());
      }
    }
  }
}

TEST(EveryOp, GradientsOfPools) {
  for (const Image& image : kImages) {
    SCOPED_TRACE(describe(image.shape));
    Attributes window = window_of(image, 3), average = window;
    average["exclude_pad"] = false;
    average["src_shape"] = image.shape;
    GraphBuilder forward;
    const auto x = forward.input(f32, image.shape);
    const auto y = forward.op(OpKind::MaxPool, {x}, window);
    const Graph pool = forward.finish();
    const Dims pooled = *pool.tensor(*pool.find_value(y)).shape;
    GraphBuilder g;
    const auto diff = g.input(f32, pooled);
    g.op(OpKind::MaxPoolBackward, {g.input(f32, image.shape), diff}, window);
    g.op(OpKind::AvgPoolBackward, {diff}, average);
    expect_same_bits(g.finish());
  }
}

TEST(EveryOp, ResamplingsOfEveryMode) {
  for (const Image& image : kImages) {
    const size_t axes = image.shape.size() - 2;
    for (const char* const mode : {"nearest", "linear"}) {
      SCOPED_TRACE(join(describe(image.shape), " ", mode));
      GraphBuilder g;
      g.op(OpKind::Interpolate, {g.input(f32, image.shape)},
           {{"mode", std::string(mode)},
            {"scales", std::vector<float>(axes, 1.5F)},
            {"data_format", std::string(image.channels_last ? "NXC" : "NCX")}});
      expect_same_bits(g.finish());
    }
  }
}

TEST(EveryOp, SumsOfGroups) {
  for (const DataType dtype : {f32, bf16}) {
    SCOPED_TRACE(name_of(dtype));
    GraphBuilder g;
    const auto ends = [&g] { return g.input(DataType::s32, {3}); };
    g.op(OpKind::GroupedMatMul, {g.input(dtype, {7, 40}), g.input(dtype, {40, 20}), ends()});
    g.op(OpKind::GroupedMatMul, {g.input(dtype, {40, 7}), g.input(dtype, {3, 40, 20}), ends()}, {{"transpose_a", true}});
    expect_same_bits(g.finish());
  }
}

TEST(EveryOp, SumsOverNothingAndNothing) {
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{{3, 0, 4}, {0, 5, 4}, {3, 5, 0}}) {
    SCOPED_TRACE(join(m, " ", k, " ", n));
    GraphBuilder g;
    const auto product = g.op(OpKind::MatMul, {g.input(f32, {m, k}), g.constant(f32, {k, n}), g.input(f32, {n})});
    g.op(OpKind::ReLU, {product});
    expect_same_bits(g.finish());
  }
}

}  // namespace
}  // namespace lamina::testing
