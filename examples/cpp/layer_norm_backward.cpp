// LayerNorm forward with its statistics, then the gradients of its input, gamma and beta. Checks a property of the result: the
// gradient of the input has no mean, because a constant that is added to a row changes nothing.
#include <graph/lamina.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace lamina::graph;
using tensor_info = logical_tensor;

namespace {

constexpr int64_t kRows = 64, kColumns = 256;
const auto f32 = tensor_info::data_type::f32;
const auto dense = tensor_info::layout_type::strided;

std::vector<float> values(size_t count, float step) {
  std::vector<float> result(count);
  for (size_t i = 0; i < count; ++i) result[i] = std::sin(step * static_cast<float>(i));
  return result;
}

}  // namespace

int main() {
  tensor_info src(0, f32, {kRows, kColumns}, dense), gamma(1, f32, {kColumns}, dense), beta(2, f32, {kColumns}, dense);
  tensor_info dst(3, f32, {kRows, kColumns}, dense), mean(4, f32, {kRows}, dense), variance(5, f32, {kRows}, dense);
  tensor_info diff_dst(6, f32, {kRows, kColumns}, dense), diff_src(7, f32, {kRows, kColumns}, dense);
  tensor_info diff_gamma(8, f32, {kColumns}, dense), diff_beta(9, f32, {kColumns}, dense);

  graph g(engine::kind::cpu);
  g.add_op(op(0, op::kind::LayerNorm, {src, gamma, beta}, {dst, mean, variance}).set_attr(op::attr::keep_stats, true));
  g.add_op(op(1, op::kind::LayerNormBackward, {src, diff_dst, mean, variance, gamma, beta}, {diff_src, diff_gamma, diff_beta}));
  g.finalize();

  engine cpu(engine::kind::cpu, 0);
  stream s(cpu);
  const std::vector<float> scale(kColumns, 1.5f), shift(kColumns, 0.5f);
  std::vector<float> x = values(kRows * kColumns, 0.37f), dy = values(kRows * kColumns, 0.11f);
  std::vector<float> y(x.size()), means(kRows), variances(kRows), dx(x.size()), dgamma(kColumns), dbeta(kColumns);
  const auto memory = [&](const tensor_info& info) -> void* {
    const void* const all[] = {x.data(),         scale.data(), shift.data(), y.data(),      means.data(),
                               variances.data(), dy.data(),    dx.data(),    dgamma.data(), dbeta.data()};
    return const_cast<void*>(all[info.get_id()]);
  };
  // Partitions come in an order in which they can run.
  for (const partition& part : g.get_partitions()) {
    const auto inputs = part.get_input_ports(), outputs = part.get_output_ports();
    const compiled_partition compiled = part.compile(inputs, outputs, cpu);
    std::vector<tensor> ins, outs;
    for (const tensor_info& info : inputs) ins.emplace_back(info, cpu, memory(info));
    for (const tensor_info& info : outputs) outs.emplace_back(info, cpu, memory(info));
    compiled.execute(s, ins, outs);
  }
  s.wait();

  double largest = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int64_t column = 0; column < kColumns; ++column) sum += dx[static_cast<size_t>(row * kColumns + column)];
    largest = std::max(largest, std::abs(sum));
  }
  std::printf("diff_gamma[0] %g, diff_beta[0] %g, largest sum of a row of diff_src %.1g\n", dgamma[0], dbeta[0], largest);
  return largest < 1e-4 && dbeta[0] != 0 ? 0 : 1;
}
