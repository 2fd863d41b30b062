#include "runtime/model_graphs.h"

#include <filesystem>

#include "lamina/load.h"
#include "support/files.h"
#include "support/graph_builder.h"

namespace lamina::testing {

namespace {

constexpr DataType f32 = DataType::f32;

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

// Tokens of three experts, whose last ones belong to none.
Graph products_of_groups() {
  GraphBuilder g;
  g.op(OpKind::GroupedMatMul, {g.input(f32, {70, 24}), g.constant(f32, {3, 24, 40}), g.input(DataType::s32, {3})}, {}, f32);
  return g.finish();
}

// In loops over transposed images.
Graph pools() {
  GraphBuilder g;
  const auto image = g.input(f32, {2, 5, 13, 11});
  const Attributes window = {{"kernel", Dims{3, 3}},
                             {"strides", Dims{2, 2}},
                             {"pads_begin", Dims{1, 1}},
                             {"pads_end", Dims{1, 1}},
                             {"data_format", std::string("NCX")}};
  Attributes average = window;
  average["exclude_pad"] = true;
  g.op(OpKind::MaxPool, {image}, window);
  g.op(OpKind::AvgPool, {image}, average);
  g.op(OpKind::Interpolate, {image},
       {{"mode", std::string("linear")}, {"scales", std::vector<float>{1.5F, 2}}, {"data_format", std::string("NCX")}});
  return g.finish();
}

}  // namespace

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

std::vector<NamedGraph> model_graphs() {
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
      {"Groups", [] { return products_of_groups(); }},
      {"Pools", [] { return pools(); }},
  };
  for (const auto& entry : std::filesystem::directory_iterator(LAMINA_SOURCE_DIR "/examples/graphs")) {
    const std::string path = entry.path().string();
    all.push_back({"Example_" + entry.path().stem().string(), [path] { return driver::load_graph(path, {}); }});
  }
  return all;
}

}  // namespace lamina::testing
