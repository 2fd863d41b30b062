// Exported models give the bits of the compiler's library: for kernels, products, tiles and several partitions, on every
// instruction set of this machine, for any threads, alignment and pool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "backends/exported_model.h"
#include "lamina/load.h"
#include "runtime/exported_graph.h"
#include "support/files.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32;

struct NamedGraph {
  std::string name;
  std::function<Graph()> make;
  friend void PrintTo(const NamedGraph& named, std::ostream* out) { *out << named.name; }
};

Graph layer_norm(Dims shape) {
  GraphBuilder g;
  const int64_t columns = shape.back();
  g.multi(OpKind::LayerNorm, {g.input(f32, std::move(shape)), g.constant(f32, {columns}), g.constant(f32, {columns})}, {},
          {f32, f32, f32});
  return g.finish();
}

Graph mlp(int64_t rows, int64_t width, DataType dtype) {
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, width});
  const auto hidden = g.op(OpKind::MatMul, {x, g.constant(dtype, {width, 4 * width}), g.constant(dtype, {4 * width})});
  const auto activated = g.op(OpKind::GELU, {hidden});
  g.op(OpKind::MatMul, {activated, g.constant(dtype, {4 * width, width}), g.constant(dtype, {width})});
  return g.finish();
}

// Tiles of query rows, with the scale and the softmax between two products.
Graph attention(int64_t queries, int64_t keys) {
  GraphBuilder g;
  const auto q = g.input(f32, {2, 3, queries, 32}), k = g.input(f32, {2, 3, keys, 32}), v = g.input(f32, {2, 3, keys, 32});
  const auto scores = g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}});
  const auto scaled = g.op(OpKind::Multiply, {scores, g.number(0.17677669)});
  const auto weights = g.op(OpKind::SoftMax, {scaled}, {{"axis", int64_t{-1}}});
  g.op(OpKind::MatMul, {weights, v});
  return g.finish();
}

// Windows in groups, with pads, read as rows, by pointers, and in place.
Graph convolution(int64_t channels, int64_t groups, int64_t window) {
  GraphBuilder g;
  const auto src = g.input(f32, {2, channels, 9, 9}),
             weights = g.constant(f32, {2 * channels, channels / groups, window, window});
  const int64_t pad = window / 2;
  const auto dst = g.op(OpKind::Convolution, {src, weights, g.constant(f32, {2 * channels})},
                        {{"strides", Dims{1, 1}},
                         {"pads_begin", Dims{pad, pad}},
                         {"pads_end", Dims{pad, pad}},
                         {"dilations", Dims{1, 1}},
                         {"groups", groups},
                         {"data_format", "NCX"},
                         {"weights_format", "OIX"}});
  g.op(OpKind::ReLU, {dst});
  return g.finish();
}

Graph column_sums() {
  GraphBuilder g;
  const auto src = g.input(f32, {300, 200}), diff = g.input(f32, {300, 200});
  g.multi(OpKind::LayerNormBackward,
          {src, diff, g.input(f32, {300, 1}), g.input(f32, {300, 1}), g.input(f32, {200}), g.input(f32, {200})}, {},
          {f32, f32, f32});
  return g.finish();
}

std::vector<NamedGraph> graphs() {
  std::vector<NamedGraph> all = {
      {"LayerNorm", [] { return layer_norm({64, 768}); }},
      {"LayerNormOfOddRows", [] { return layer_norm({7, 13}); }},
      {"LayerNormOfFewLongRows", [] { return layer_norm({3, 100'000}); }},
      {"LayerNormThatStreams", [] { return layer_norm({4096, 1024}); }},
      {"Mlp", [] { return mlp(17, 64, f32); }},
      {"MlpOfOneRow", [] { return mlp(1, 96, f32); }},
      {"MlpOfDoubles", [] { return mlp(9, 40, DataType::f64); }},
      {"Attention", [] { return attention(70, 70); }},
      {"AttentionOfOneQuery", [] { return attention(1, 130); }},
  };
  for (const auto& entry : std::filesystem::directory_iterator(LAMINA_SOURCE_DIR "/examples/graphs")) {
    const std::string path = entry.path().string();
    all.push_back({"Example_" + entry.path().stem().string(), [path] { return driver::load_graph(path, {}); }});
  }
  return all;
}

class ExportedModels : public ::testing::TestWithParam<NamedGraph> {};

TEST_P(ExportedModels, GiveTheBitsOfTheLibrary) {
  ExportedGraph exported(GetParam().make());
  for (const int threads : {1, 3})
    for (const size_t shift : {0, 1, 3}) EXPECT_EQ(exported.difference({threads, shift}), "") << threads << " " << shift;
}

TEST_P(ExportedModels, GiveTheSameBitsOnEveryInstructionSet) {
  for (const std::string& isa : cpu_isas_here()) {
    ExportedGraph exported(GetParam().make(), {isa});
    const runtime::model model = exported.load();
    EXPECT_EQ(model.isa(), isa);
    EXPECT_EQ(exported.difference(model, {2}), "") << isa;
  }
}

TEST_P(ExportedModels, AreTheSameBytesEachTime) {
  const std::vector<std::string> isas = {"avx2", "neon"};
  EXPECT_EQ(ExportedGraph(GetParam().make(), isas).file().text(), ExportedGraph(GetParam().make(), isas).file().text());
}

INSTANTIATE_TEST_SUITE_P(Graphs, ExportedModels, ::testing::ValuesIn(graphs()),
                         [](const auto& named) { return named.param.name; });

// The library runs some of these by oneDNN, so they are compared with the same primitives in this process.
TEST(ExportedModel, WithConvolutions) {
  for (const auto& [channels, groups, window] :
       std::vector<std::array<int64_t, 3>>{{16, 1, 3}, {3, 1, 3}, {32, 1, 1}, {8, 8, 3}, {24, 2, 5}}) {
    ExportedGraph exported(convolution(channels, groups, window));
    exported.compare_with(*backend_like_exported());
    for (const size_t shift : {0, 1})
      EXPECT_EQ(exported.difference({2, shift}), "") << channels << " " << groups << " " << window;
  }
}

// Weights of 4 and 8 bits: constant, and given by the caller.
TEST(ExportedModel, WithWeightsOfFewBits) {
  for (const DataType dtype : {DataType::s8, DataType::s4}) {
    for (const bool is_constant : {true, false}) {
      GraphBuilder g;
      const auto weights = is_constant ? g.constant(dtype, {64, 48}) : g.input(dtype, {64, 48});
      const auto scales = is_constant ? g.constant(f32, {2, 48}) : g.input(f32, {2, 48});
      const auto floats = g.op(OpKind::DynamicDequantize, {weights, scales},
                               {{"qtype", std::string("per_group")}, {"group_shape", Dims{32, 1}}}, f32);
      g.op(OpKind::MatMul, {g.input(f32, {5, 64}), floats});
      ExportedGraph exported(g.finish());
      EXPECT_EQ(exported.difference({2, 0}), "") << name_of(dtype) << " " << is_constant;
      EXPECT_NE(exported.file().text().find("lamina_dequantized_tile"),
                std::string::npos);  // not dequantised before the product
    }
  }
}

TEST(ExportedModel, WithRowsAlongAnAxis) {
  for (const DataType dtype : {f32, DataType::bf16, DataType::s32}) {
    GraphBuilder g;
    const auto x = g.input(dtype, {6, 50, 3});
    g.multi(OpKind::TopK, {x}, {{"axis", int64_t{1}}, {"k", int64_t{7}}, {"largest", true}}, {dtype, DataType::s64});
    g.op(OpKind::CumSum, {x}, {{"axis", int64_t{1}}, {"reverse", true}, {"exclusive", true}});
    g.op(OpKind::CumProd, {x}, {{"axis", int64_t{-1}}});
    ExportedGraph exported(g.finish());
    EXPECT_EQ(exported.difference({3, 1}), "") << name_of(dtype);
  }
}

TEST(ExportedModel, WithColumnSums) {
  ExportedGraph exported(column_sums());
  EXPECT_EQ(exported.difference({3, 0}), "");
}

}  // namespace
}  // namespace lamina::testing
