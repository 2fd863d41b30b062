// A client of oneDNN Graph: attention as MatMul, Divide, Add, SoftMax, MatMul, compared with plain loops, also under the debug
// policy.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "client.h"

namespace {

constexpr int64_t kHeads = 3, kQueries = 5, kKeys = 11, kSize = 8;

Doubles expected(const Floats& query, const Floats& key, const Floats& mask, const Floats& value, double scale) {
  Doubles result(kHeads * kQueries * kSize);
  for (int64_t row = 0; row < kHeads * kQueries; ++row) {
    const int64_t head = row / kQueries;
    Doubles scores(kKeys);
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < kKeys; ++k) {
      for (int64_t i = 0; i < kSize; ++i) scores[k] += double(query[row * kSize + i]) * key[(head * kKeys + k) * kSize + i];
      scores[k] = scores[k] / scale + mask[(row % kQueries) * kKeys + k];
      largest = std::max(largest, scores[k]);
    }
    for (double& score : scores) sum += score = std::exp(score - largest);
    for (int64_t k = 0; k < kKeys; ++k)
      for (int64_t i = 0; i < kSize; ++i) result[row * kSize + i] += scores[k] / sum * value[(head * kKeys + k) * kSize + i];
  }
  return result;
}

}  // namespace

int main() {
  Client client;
  const logical_tensor query = f32(0, {1, kHeads, kQueries, kSize}), key = f32(1, {1, kHeads, kKeys, kSize}),
                       value = f32(2, {1, kHeads, kKeys, kSize}), scale = f32(3, {1}), mask = f32(4, {1, 1, kQueries, kKeys});
  const logical_tensor::dims scores{1, kHeads, kQueries, kKeys};
  const logical_tensor score = f32(5, scores), scaled = f32(6, scores), masked = f32(7, scores), weights = f32(8, scores),
                       out = f32(9, {1, kHeads, kQueries, kSize});
  op first(1, op::kind::MatMul, {query, key}, {score}, "first");
  first.set_attr<bool>(op::attr::transpose_b, true);
  const op divide(2, op::kind::Divide, {score, scale}, {scaled}, "divide"),
      add(3, op::kind::Add, {scaled, mask}, {masked}, "add");
  op softmax(4, op::kind::SoftMax, {masked}, {weights}, "softmax");
  softmax.set_attr<int64_t>(op::attr::axis, -1);
  const op second(5, op::kind::MatMul, {weights, value}, {out}, "second");

  const size_t keys = kHeads * kKeys * kSize;
  const Floats q = numbers(kHeads * kQueries * kSize, 1), k = numbers(keys, 2), v = numbers(keys, 3),
               m = numbers(kQueries * kKeys, 4);
  const Floats root = {2.5f};
  const Results results =
      client.run({first, divide, add, softmax, second}, {{query, q}, {key, k}, {value, v}, {scale, root}, {mask, m}}, {out});
  client.expect_near("attention", results[0], expected(q, k, m, v, root[0]), 1e-5);
  return client.exit_code();
}
