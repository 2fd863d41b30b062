// Whole graphs of products with hashes of their results, which are the same on every machine: an element of a product is one
// chain of fused multiply-adds in the order of k, and products of integers are exact (docs/numerics.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "interface/status.h"
#include "support/graph_builder.h"

namespace lamina::testing {

struct GoldenGraph {
  const char* name;
  DataType dtype;
  Graph (*build)(DataType);
  double error;                  // to the reference, relative to an element or to the root mean square of its tensor
  uint64_t hash;                 // FNV-1a of the output's bytes
  uint64_t hash_on_gpus = hash;  // another one where rows are summed: GPUs have an order of their own for these sums
};

inline void PrintTo(const GoldenGraph& golden, std::ostream* out) { *out << golden.name; }

inline uint64_t hash_of_bytes(const void* data, size_t bytes) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 1099511628211u;
  return hash;
}

inline Graph golden_product(DataType dtype) {
  GraphBuilder g;
  g.op(OpKind::MatMul, {g.input(dtype, {67, 530}), g.input(dtype, {530, 141}), g.input(dtype, {141})});
  return g.finish();
}

inline Graph golden_row(DataType dtype) {
  GraphBuilder g;
  g.op(OpKind::MatMul, {g.input(dtype, {1, 2100}), g.input(dtype, {333, 2100})}, {{"transpose_b", true}});
  return g.finish();
}

inline Graph golden_gated_products(DataType dtype) {
  GraphBuilder g;
  const auto x = g.input(dtype, {300, 96});
  const auto gate = g.op(OpKind::MatMul, {x, g.input(dtype, {96, 200})}),
             up = g.op(OpKind::MatMul, {x, g.input(dtype, {96, 200})});
  const auto gated = g.op(OpKind::Multiply, {g.op(OpKind::Multiply, {gate, g.op(OpKind::Sigmoid, {gate})}), up});
  g.op(OpKind::MatMul, {gated, g.input(dtype, {200, 96})});
  return g.finish();
}

inline Graph golden_attention(DataType dtype, int64_t queries, bool is_causal) {
  GraphBuilder g;
  const auto q = g.input(dtype, {2, 4, queries, 64}), k = g.input(dtype, {2, 4, 150, 64}), v = g.input(dtype, {2, 4, 150, 64});
  auto scores = g.op(OpKind::Divide, {g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}}), g.number(8, dtype)});
  if (is_causal) {
    const auto row = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-2}}}, DataType::s32);
    const auto column = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-1}}}, DataType::s32);
    const auto seen = g.op(OpKind::GreaterEqual, {row, column}, {}, DataType::boolean);
    scores = g.op(OpKind::Select, {seen, scores, g.number(-1e30, dtype)}, {}, dtype);
  }
  g.op(OpKind::MatMul, {g.op(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}}), v});
  return g.finish();
}
inline Graph golden_causal_attention(DataType dtype) { return golden_attention(dtype, 150, true); }
inline Graph golden_decoding(DataType dtype) { return golden_attention(dtype, 1, false); }

// The scales are powers of two, so the operations after the sum can round in one way only.
inline Graph golden_integer_product(DataType dst) {
  GraphBuilder g;
  const auto dequantized = [&](DataType dtype, Dims shape, float scale, int64_t zero_point) {
    return g.op(OpKind::Dequantize, {g.input(dtype, std::move(shape))},
                {{"scales", std::vector<float>{scale}}, {"zps", std::vector<int64_t>{zero_point}}}, DataType::f32);
  };
  const auto src = dequantized(DataType::u8, {150, 300}, 0.125f, 7), weights = dequantized(DataType::s8, {300, 70}, 0.0625f, 0);
  const auto sum = g.op(OpKind::ReLU, {g.op(OpKind::MatMul, {src, weights})});
  g.op(OpKind::Quantize, {sum}, {{"scales", std::vector<float>{8}}, {"zps", std::vector<int64_t>{3}}}, dst);
  return g.finish();
}

inline const std::vector<GoldenGraph>& golden_graphs() {
  static const std::vector<GoldenGraph> all{
      {"Product_f32", DataType::f32, golden_product, 1e-4, 5275253197696134318u},
      {"Product_f64", DataType::f64, golden_product, 1e-13, 6805638302515492199u},
      {"Row_f32", DataType::f32, golden_row, 1e-4, 9354314118526993801u},
      {"Row_f64", DataType::f64, golden_row, 1e-13, 13988014357409811312u},
      {"GatedProducts_f32", DataType::f32, golden_gated_products, 1e-4, 5253391427572028744u},
      {"GatedProducts_f64", DataType::f64, golden_gated_products, 1e-13, 16559075589261735305u},
      {"CausalAttention_f32", DataType::f32, golden_causal_attention, 1e-5, 269957557674866541u, 12980906658644364098u},
      {"CausalAttention_f64", DataType::f64, golden_causal_attention, 1e-13, 14845895430056289842u, 13950649052568700472u},
      {"Decoding_f32", DataType::f32, golden_decoding, 1e-5, 3623176751634251945u, 17800877584506583090u},
      {"Decoding_f64", DataType::f64, golden_decoding, 1e-13, 12511935408578394359u, 8324239641372872828u},
      {"IntegerProduct_u8", DataType::u8, golden_integer_product, 0, 11485787167360064726u}};
  return all;
}

}  // namespace lamina::testing
