// A client of oneDNN Graph: parts of models, each compared with plain loops. A convolution with bias and ReLU, a gated MLP,
// grouped queries, and operations added in the wrong order with a wildcard between them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "client.h"

namespace {

void convolution(Client& client) {
  constexpr int64_t kIn = 3, kOut = 4, kSize = 6, kFilter = 3;
  const logical_tensor src = f32(0, {2, kIn, kSize, kSize}), bias = f32(2, {kOut}), sum = f32(3, {2, kOut, kSize, kSize}),
                       biased = f32(4, {2, kOut, kSize, kSize}), dst = f32(5, {2, kOut, kSize, kSize});
  const logical_tensor filter(1, logical_tensor::data_type::f32, logical_tensor::dims{kOut, kIn, kFilter, kFilter},
                              logical_tensor::layout_type::strided, logical_tensor::property_type::constant);
  op conv(1, op::kind::Convolution, {src, filter}, {sum}, "conv");
  conv.set_attr<std::vector<int64_t>>(op::attr::strides, {1, 1});
  conv.set_attr<std::vector<int64_t>>(op::attr::pads_begin, {1, 1});
  conv.set_attr<std::vector<int64_t>>(op::attr::pads_end, {1, 1});
  conv.set_attr<std::vector<int64_t>>(op::attr::dilations, {1, 1});
  conv.set_attr<std::string>(op::attr::data_format, "NCX");
  conv.set_attr<std::string>(op::attr::weights_format, "OIX");
  op add(2, op::kind::BiasAdd, {sum, bias}, {biased}, "bias");
  add.set_attr<std::string>(op::attr::data_format, "NCX");
  const op relu(3, op::kind::ReLU, {biased}, {dst}, "relu");
  const Floats x = numbers(2 * kIn * kSize * kSize, 1), w = numbers(kOut * kIn * kFilter * kFilter, 2), b = numbers(kOut, 3);
  const Results results = client.run({conv, add, relu}, {{src, x}, {filter, w}, {bias, b}}, {dst});
  client.expect(client.num_partitions == 1, "convolution, bias and ReLU are one partition");
  Doubles expected;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t o = 0; o < kOut; ++o)
      for (int64_t h = 0; h < kSize; ++h)
        for (int64_t v = 0; v < kSize; ++v) {
          double total = b[o];
          for (int64_t i = 0; i < kIn; ++i)
            for (int64_t r = 0; r < kFilter; ++r)
              for (int64_t s = 0; s < kFilter; ++s) {
                const int64_t y = h + r - 1, z = v + s - 1;
                if (y < 0 || z < 0 || y >= kSize || z >= kSize) continue;
                total += double(x[((n * kIn + i) * kSize + y) * kSize + z]) * w[((o * kIn + i) * kFilter + r) * kFilter + s];
              }
          expected.push_back(std::max(total, 0.0));
        }
  client.expect_near("convolution", results[0], expected, 1e-5);
}

Doubles product(const Doubles& left, const Doubles& right, int64_t rows, int64_t inner, int64_t columns) {
  Doubles result(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t j = 0; j < columns; ++j) result[i * columns + j] += left[i * inner + k] * right[k * columns + j];
  return result;
}

Doubles wide(const Floats& values) { return {values.begin(), values.end()}; }

// (x U * swish(x G)) D
void gated_mlp(Client& client) {
  constexpr int64_t kRows = 5, kModel = 12, kHidden = 20;
  const logical_tensor x = f32(0, {kRows, kModel}), gate = f32(1, {kModel, kHidden}), up = f32(2, {kModel, kHidden}),
                       down = f32(3, {kHidden, kModel});
  const logical_tensor gated = f32(4, {kRows, kHidden}), raised = f32(5, {kRows, kHidden}), sigmoid = f32(6, {kRows, kHidden}),
                       swish = f32(7, {kRows, kHidden}), joined = f32(8, {kRows, kHidden}), out = f32(9, {kRows, kModel});
  const std::vector<op> ops = {op(1, op::kind::MatMul, {x, gate}, {gated}, "gate"),
                               op(2, op::kind::MatMul, {x, up}, {raised}, "up"),
                               op(3, op::kind::Sigmoid, {gated}, {sigmoid}, "sigmoid"),
                               op(4, op::kind::Multiply, {gated, sigmoid}, {swish}, "swish"),
                               op(5, op::kind::Multiply, {swish, raised}, {joined}, "join"),
                               op(6, op::kind::MatMul, {joined, down}, {out}, "down")};
  const Floats a = numbers(kRows * kModel, 1), g = numbers(kModel * kHidden, 2), u = numbers(kModel * kHidden, 3),
               d = numbers(kHidden * kModel, 4);
  const Results results = client.run(ops, {{x, a}, {gate, g}, {up, u}, {down, d}}, {out});
  Doubles left = product(wide(a), wide(g), kRows, kModel, kHidden);
  const Doubles right = product(wide(a), wide(u), kRows, kModel, kHidden);
  for (size_t i = 0; i < left.size(); ++i) left[i] = left[i] / (1 + std::exp(-left[i])) * right[i];
  client.expect_near("gated MLP", results[0], product(left, wide(d), kRows, kHidden, kModel), 1e-5);
}

// Two groups of three query heads share keys and values: MatMul broadcasts along an additional axis.
void grouped_queries(Client& client) {
  constexpr int64_t kGroups = 2, kHeads = 3, kQueries = 4, kKeys = 6, kSize = 8;
  const logical_tensor query = f32(0, {1, kGroups, kHeads, kQueries, kSize}), key = f32(1, {1, kGroups, 1, kKeys, kSize}),
                       value = f32(2, {1, kGroups, 1, kKeys, kSize}), scale = f32(3, {1});
  const logical_tensor::dims scores{1, kGroups, kHeads, kQueries, kKeys};
  const logical_tensor score = f32(4, scores), scaled = f32(5, scores), weights = f32(6, scores),
                       out = f32(7, {1, kGroups, kHeads, kQueries, kSize});
  op first(1, op::kind::MatMul, {query, key}, {score}, "first");
  first.set_attr<bool>(op::attr::transpose_b, true);
  op softmax(3, op::kind::SoftMax, {scaled}, {weights}, "softmax");
  softmax.set_attr<int64_t>(op::attr::axis, -1);
  const std::vector<op> ops = {first, op(2, op::kind::Divide, {score, scale}, {scaled}, "divide"), softmax,
                               op(4, op::kind::MatMul, {weights, value}, {out}, "second")};
  const Floats q = numbers(kGroups * kHeads * kQueries * kSize, 1), k = numbers(kGroups * kKeys * kSize, 2),
               v = numbers(kGroups * kKeys * kSize, 3), root = {std::sqrt(float(kSize))};
  const Results results = client.run(ops, {{query, q}, {key, k}, {value, v}, {scale, root}}, {out});
  Doubles expected(q.size());
  for (int64_t row = 0; row < kGroups * kHeads * kQueries; ++row) {
    const int64_t group = row / (kHeads * kQueries);
    Doubles weight(kKeys);
    double sum = 0;
    for (int64_t j = 0; j < kKeys; ++j) {
      double dot = 0;
      for (int64_t i = 0; i < kSize; ++i) dot += double(q[row * kSize + i]) * k[(group * kKeys + j) * kSize + i];
      sum += weight[j] = std::exp(dot / root[0]);
    }
    for (int64_t j = 0; j < kKeys; ++j)
      for (int64_t i = 0; i < kSize; ++i) expected[row * kSize + i] += weight[j] / sum * v[(group * kKeys + j) * kSize + i];
  }
  client.expect_near("grouped queries", results[0], expected, 1e-5);
}

// The client adds operations in reverse order, with an End and an operation that the library does not know between them.
void order_of_partitions(Client& client) {
  const logical_tensor a = f32(1, {4, 8}), b = f32(2, {4, 8}), c = f32(3, {4, 8}), d = f32(4, {4, 8});
  graph g(dnnl::engine::kind::cpu);
  g.add_op(op(30, op::kind::End, {d}, {}, "end"));
  g.add_op(op(20, op::kind::Exp, {c}, {d}, "exp"));
  g.add_op(op(10, op::kind::Wildcard, {b}, {c}, "mine"));
  g.add_op(op(5, op::kind::Tanh, {a}, {b}, "tanh"));
  g.finalize();
  std::vector<size_t> order;
  int supported = 0;
  for (const partition& part : g.get_partitions()) {
    supported += part.is_supported() ? 1 : 0;
    for (const size_t id : part.get_ops()) order.push_back(id);
  }
  client.expect(order == std::vector<size_t>{5, 10, 20, 30}, "partitions in the order in which they run");
  client.expect(supported == 2, "two of them supported");
}

// Compiles one partition for several shapes; the graph's shapes are unknown.
void shapes_at_compile_time(Client& client) {
  const logical_tensor::data_type type = logical_tensor::data_type::f32;
  const logical_tensor a(1, type, 2, logical_tensor::layout_type::strided), b(2, type, 2, logical_tensor::layout_type::strided),
      c(3, type, 2, logical_tensor::layout_type::strided);
  graph g(dnnl::engine::kind::cpu);
  g.add_op(op(1, op::kind::MatMul, {a, b}, {c}, "matmul"));
  g.finalize();
  const partition part = g.get_partitions().at(0);
  for (const int64_t rows : {1, 5, 17}) {
    const logical_tensor left = f32(1, {rows, 9}), right = f32(2, {9, 4});
    const compiled_partition compiled = part.compile({left, right}, {c}, client.engine);
    const logical_tensor result = compiled.query_logical_tensor(3);
    client.expect(result.get_dims() == logical_tensor::dims{rows, 4}, "the shape of the product");
    Floats x = numbers(rows * 9, 1), y = numbers(36, 2), z(rows * 4);
    compiled.execute(client.stream, {tensor(left, client.engine, x.data()), tensor(right, client.engine, y.data())},
                     {tensor(result, client.engine, z.data())});
    client.stream.wait();
    client.expect_near("product", z, product(wide(x), wide(y), rows, 9, 4), 1e-5);
  }
}

}  // namespace

int main() {
  Client client;
  convolution(client);
  gated_mlp(client);
  grouped_queries(client);
  order_of_partitions(client);
  shapes_at_compile_time(client);
  return client.exit_code();
}
