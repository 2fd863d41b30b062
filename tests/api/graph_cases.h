// Small graphs with a single partition, and their inputs, for everything that the CPU runs on several threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "api_fixture.h"

namespace api_test {

using Bytes = std::vector<std::byte>;

struct GraphCase {
  std::string name;
  std::vector<op> ops;
  std::vector<logical_tensor> inputs, outputs;
  size_t positive = SIZE_MAX;  // the input with only positive values
};

inline logical_tensor typed(size_t id, data_type type, const dims& shape, property_type property = property_type::undef) {
  return {id, type, shape, layout_type::strided, property};
}

inline GraphCase layer_norm_case(int64_t rows, int64_t size) {
  const auto src = f32(0, {rows, size}), gamma = f32(1, {size}), beta = f32(2, {size}), dst = f32(3, {rows, size});
  const auto mean = f32(4, {rows}), variance = f32(5, {rows});
  return {"layer norm",
          {op(0, op::kind::LayerNorm, {src, gamma, beta}, {dst, mean, variance}, "ln")},
          {src, gamma, beta},
          {dst, mean, variance}};
}

inline GraphCase layer_norm_backward_case(int64_t rows, int64_t size) {
  const auto src = f32(0, {rows, size}), diff_dst = f32(1, {rows, size}), mean = f32(2, {rows}), variance = f32(3, {rows});
  const auto gamma = f32(4, {size}), diff_src = f32(5, {rows, size}), diff_gamma = f32(6, {size}), diff_beta = f32(7, {size});
  return {"layer norm backward",
          {op(0, op::kind::LayerNormBackward, {src, diff_dst, mean, variance, gamma}, {diff_src, diff_gamma, diff_beta}, "ln")},
          {src, diff_dst, mean, variance, gamma},
          {diff_src, diff_gamma, diff_beta},
          3};
}

inline GraphCase softmax_case(int64_t rows, int64_t size) {
  const auto src = f32(0, {rows, size}), dst = f32(1, {rows, size});
  return {"softmax", {op(0, op::kind::SoftMax, {src}, {dst}, "softmax").set_attr(op::attr::axis, int64_t{-1})}, {src}, {dst}};
}

// Over channels of channels-first planes.
inline GraphCase channel_softmax_case(int64_t channels, int64_t size) {
  const auto src = f32(0, {2, channels, size, size}), dst = f32(1, {2, channels, size, size});
  return {"channel softmax",
          {op(0, op::kind::SoftMax, {src}, {dst}, "softmax").set_attr(op::attr::axis, int64_t{1})},
          {src},
          {dst}};
}

// softmax(q k^T * scale + mask) v
inline GraphCase attention_case(int64_t batch, int64_t heads, int64_t rows, int64_t width) {
  const dims qkv{batch, heads, rows, width}, square{batch, heads, rows, rows};
  const auto q = f32(0, qkv), k = f32(1, qkv), v = f32(2, qkv), scale = f32(3, {1}), mask = f32(4, {batch, 1, 1, rows});
  const auto products = f32(5, square), scaled = f32(6, square), masked = f32(7, square), weights = f32(8, square),
             dst = f32(9, qkv);
  return {
      "attention",
      {op(0, op::kind::MatMul, {q, k}, {products}, "qk").set_attr(op::attr::transpose_b, true),
       op(1, op::kind::Multiply, {products, scale}, {scaled}, "scale"), op(2, op::kind::Add, {scaled, mask}, {masked}, "mask"),
       op(3, op::kind::SoftMax, {masked}, {weights}, "softmax").set_attr(op::attr::axis, int64_t{-1}),
       op(4, op::kind::MatMul, {weights, v}, {dst}, "pv")},
      {q, k, v, scale, mask},
      {dst}};
}

// gelu(src weights + bias), the weights constant
inline GraphCase mlp_case(int64_t rows, int64_t in, int64_t out, data_type type = data_type::f32) {
  const auto src = typed(0, type, {rows, in}), weights = typed(1, type, {in, out}, property_type::constant),
             bias = typed(2, type, {out}, property_type::constant), sum = typed(3, type, {rows, out}),
             dst = typed(4, type, {rows, out});
  return {"mlp",
          {op(0, op::kind::MatMul, {src, weights, bias}, {sum}, "product"), op(1, op::kind::GELU, {sum}, {dst}, "gelu")},
          {src, weights, bias},
          {dst}};
}

// Two products; the second one reads the rows of the first.
inline GraphCase two_products_case(int64_t rows, int64_t width) {
  const auto src = f32(0, {rows, width}), first = f32(1, {width, width}), second = f32(2, {width, width});
  const auto sum = f32(3, {rows, width}), gelu = f32(4, {rows, width}), dst = f32(5, {rows, width});
  return {"two products",
          {op(0, op::kind::MatMul, {src, first}, {sum}, "first"), op(1, op::kind::GELU, {sum}, {gelu}, "gelu"),
           op(2, op::kind::MatMul, {gelu, second}, {dst}, "second")},
          {src, first, second},
          {dst}};
}

// dequantized u8 [rows, in] x dequantized s8 [in, out]
inline GraphCase int8_product_case(int64_t rows, int64_t in, int64_t out) {
  const auto src = typed(0, data_type::u8, {rows, in}), weights = typed(1, data_type::s8, {in, out}, property_type::constant);
  const auto wide_src = f32(2, {rows, in}), wide_weights = f32(3, {in, out}), dst = f32(4, {rows, out});
  const auto dequantize = [](size_t id, const logical_tensor& from, const logical_tensor& to, int64_t zero_point) {
    return op(id, op::kind::Dequantize, {from}, {to}, "dequantize" + std::to_string(id))
        .set_attr(op::attr::scales, std::vector<float>{0.01f})
        .set_attr(op::attr::zps, std::vector<int64_t>{zero_point})
        .set_attr(op::attr::qtype, std::string("per_tensor"));
  };
  return {"int8 product",
          {dequantize(0, src, wide_src, 7), dequantize(1, weights, wide_weights, 0),
           op(2, op::kind::MatMul, {wide_src, wide_weights}, {dst}, "product")},
          {src, weights},
          {dst}};
}

inline op with_window(op each) {
  return each.set_attr(op::attr::strides, std::vector<int64_t>{1, 1})
      .set_attr(op::attr::pads_begin, std::vector<int64_t>{1, 1})
      .set_attr(op::attr::pads_end, std::vector<int64_t>{1, 1})
      .set_attr(op::attr::data_format, std::string("NCX"));
}

inline op with_taps(op each) {
  return with_window(std::move(each))
      .set_attr(op::attr::dilations, std::vector<int64_t>{1, 1})
      .set_attr(op::attr::groups, int64_t{1})
      .set_attr(op::attr::weights_format, std::string("OIX"));
}

inline GraphCase convolution_case(int64_t images, int64_t channels, int64_t size) {
  const dims image{images, channels, size, size};
  const auto src = f32(0, image), weights = typed(1, data_type::f32, {channels, channels, 3, 3}, property_type::constant),
             sum = f32(2, image), dst = f32(3, image);
  return {"convolution",
          {with_taps(op(0, op::kind::Convolution, {src, weights}, {sum}, "convolution")),
           op(1, op::kind::ReLU, {sum}, {dst}, "relu")},
          {src, weights},
          {dst}};
}

inline GraphCase weight_gradient_case(int64_t images, int64_t channels, int64_t size) {
  const dims image{images, channels, size, size};
  const auto src = f32(0, image), diff_dst = f32(1, image), diff_weights = f32(2, {channels, channels, 3, 3});
  return {"weight gradient",
          {with_taps(op(0, op::kind::ConvolutionBackwardWeights, {src, diff_dst}, {diff_weights}, "gradient"))
               .set_attr(op::attr::weights_shape, std::vector<int64_t>{channels, channels, 3, 3})},
          {src, diff_dst},
          {diff_weights}};
}

inline GraphCase pool_case(int64_t images, int64_t channels, int64_t size) {
  const dims image{images, channels, size, size};
  const auto src = f32(0, image), dst = f32(1, image);
  return {"pool",
          {with_window(op(0, op::kind::AvgPool, {src}, {dst}, "pool"))
               .set_attr(op::attr::kernel, std::vector<int64_t>{3, 3})
               .set_attr(op::attr::exclude_pad, true)},
          {src},
          {dst}};
}

// The values make every sum round, so the bits reveal the order of summation.
inline Bytes memory_for(const logical_tensor& lt, bool is_positive) {
  Bytes memory(lt.get_mem_size());
  auto state = static_cast<uint32_t>(lt.get_id() * 7919 + 12345);
  const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  const bool is_bf16 = lt.get_data_type() == data_type::bf16;
  if (lt.get_data_type() != data_type::f32 && !is_bf16) {
    for (std::byte& each : memory) each = static_cast<std::byte>(next());
    return memory;
  }
  const size_t width = is_bf16 ? 2 : 4;
  for (size_t at = 0; at < memory.size(); at += width) {
    const float value = static_cast<float>(next()) / static_cast<float>(1 << 24) - (is_positive ? -0.1f : 0.5f);
    // The upper half of an f32 is its bf16.
    std::memcpy(memory.data() + at, reinterpret_cast<const std::byte*>(&value) + (4 - width), width);
  }
  return memory;
}

// A case compiled for an engine, and its inputs, which all executions share.
class CompiledCase {
 public:
  CompiledCase(const GraphCase& which, const engine& target)
      : case_(which), partition_(only_partition_of(which.ops)), compiled_(compile(target)) {
    for (const logical_tensor& lt : case_.inputs) memory_.push_back(memory_for(lt, lt.get_id() == case_.positive));
  }
  compiled_partition compile(const engine& target) const { return partition_.compile(case_.inputs, case_.outputs, target); }
  std::vector<Bytes> run(const engine& target) const { return run(compiled_, target); }
  std::vector<Bytes> run(const compiled_partition& compiled, const engine& target) const {
    std::vector<tensor> inputs, outputs;
    std::vector<Bytes> results;
    for (size_t i = 0; i < memory_.size(); ++i)
      inputs.emplace_back(case_.inputs[i], target, const_cast<std::byte*>(memory_[i].data()));
    for (const logical_tensor& lt : case_.outputs) results.emplace_back(lt.get_mem_size());
    for (size_t i = 0; i < results.size(); ++i) outputs.emplace_back(case_.outputs[i], target, results[i].data());
    compiled.execute(stream(target), inputs, outputs);
    return results;
  }
  const std::string& name() const { return case_.name; }

 private:
  GraphCase case_;
  partition partition_;
  compiled_partition compiled_;
  std::vector<Bytes> memory_;
};

}  // namespace api_test
