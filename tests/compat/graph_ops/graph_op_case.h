// Graph ops that compute gradients of layer normalisation, executed through the public graph interface on tensors of any type.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "graph/lamina.hpp"
#include "support/layer_norm_case.h"

namespace graph_op_test {

using lamina::DataType;
using lamina::Dims;
using lamina::engine;
using lamina::stream;
using lamina::graph::logical_tensor;
using lamina::graph::op;
using namespace lamina::testing;

inline const logical_tensor kAbsent;  // the empty logical tensor: an omitted port

inline logical_tensor describe(size_t id, const TypedTensor& tensor) {
  return {id, static_cast<logical_tensor::data_type>(tensor.dtype), tensor.shape, tensor.strides};
}

// Adds the tensors as ports of `norm` in order (null omits a port), compiles the op alone and runs it.
inline void run_op(op norm, const std::vector<TypedTensor*>& inputs, const std::vector<TypedTensor*>& outputs) {
  const engine cpu(engine::kind::cpu, 0);
  std::vector<lamina::graph::tensor> in, out;
  std::vector<logical_tensor> in_ports, out_ports;
  size_t id = 0;
  const auto bind = [&](TypedTensor* tensor, std::vector<logical_tensor>& ports, std::vector<lamina::graph::tensor>& bound) {
    const logical_tensor port = tensor == nullptr ? kAbsent : describe(id++, *tensor);
    if (tensor != nullptr) {
      ports.push_back(port);
      bound.emplace_back(port, cpu, tensor->data());
    }
    return port;
  };
  for (TypedTensor* tensor : inputs) norm.add_input(bind(tensor, in_ports, in));
  for (TypedTensor* tensor : outputs) norm.add_output(bind(tensor, out_ports, out));
  lamina::graph::graph g(engine::kind::cpu);
  g.add_op(norm);
  g.finalize();
  const auto partitions = g.get_partitions();
  ASSERT_EQ(partitions.size(), 1U);
  ASSERT_TRUE(partitions[0].is_supported());
  partitions[0].compile(in_ports, out_ports, cpu).execute(stream(cpu), in, out);
}

// src, diff_dst and the other tensors of one problem; the numbers are rounded to the tensors' types.
struct Problem {
  explicit Problem(Dims dims, size_t normalized_axes = 1, DataType data = DataType::f32, DataType small = DataType::f32,
                   DataType stats = DataType::undef)
      : shape(std::move(dims)),
        leading(shape.begin(), shape.end() - static_cast<int64_t>(normalized_axes)),
        normalized(shape.end() - static_cast<int64_t>(normalized_axes), shape.end()) {
    if (stats == DataType::undef) stats = small;
    const size_t count = count_of(shape), rows = count_of(leading), columns = count_of(normalized);
    src = TypedTensor(data, shape, RandomTensor(1).uniform(count, -2, 2));
    diff_dst = TypedTensor(data, shape, RandomTensor(6).uniform(count, -2, 2));
    gamma = TypedTensor(small, normalized, RandomTensor(2).uniform(columns, -2, 2));
    beta = TypedTensor(small, normalized, RandomTensor(3).uniform(columns, -2, 2));
    mean = TypedTensor(stats, leading, RandomTensor(4).uniform(rows, -1, 1));
    variance = TypedTensor(stats, leading, RandomTensor(5).uniform(rows, 0.5, 2));
    diff_src = TypedTensor(data, shape);
    diff_gamma = diff_beta = TypedTensor(small, normalized);
  }
  static size_t count_of(const Dims& dims) { return static_cast<size_t>(TypedTensor(DataType::u8, dims).count()); }

  LayerNormNumbers numbers(bool affine = true, bool given_stats = true) const {
    LayerNormNumbers n;
    n.size = static_cast<int64_t>(count_of(normalized));
    n.epsilon = static_cast<double>(epsilon);
    n.src = src.values();
    n.diff_dst = diff_dst.values();
    if (affine) n.scale = gamma.values();
    if (given_stats) {
      n.mean = mean.values();
      n.variance = variance.values();
    } else {
      n.compute_statistics();
    }
    return n;
  }
  void check(bool affine = true, bool given_stats = true) const {
    const LayerNormNumbers n = numbers(affine, given_stats);
    expect_close(diff_src, n.diff_src(), "diff_src", 4);
    if (!affine) return;
    expect_close(diff_gamma, n.diff_scale(), "diff_gamma", 8);
    expect_close(diff_beta, n.diff_shift(), "diff_beta", 8);
  }

  Dims shape, leading, normalized;
  float epsilon = 1e-5f;
  TypedTensor src, diff_dst, gamma, beta, mean, variance, diff_src, diff_gamma, diff_beta;
};

}  // namespace graph_op_test
