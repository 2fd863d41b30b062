// Two linear layers with GELU between them. The batch is unknown in the graph: each batch size is compiled once, in
// milliseconds, and the weights, which are constant, are packed once for all of them.
#include <graph/lamina.hpp>

#include <chrono>
#include <cstdio>
#include <vector>

using namespace lamina::graph;
using tensor_info = logical_tensor;

int main() {
  constexpr int64_t kIn = 256, kHidden = 1024, kOut = 128, any = LAMINA_GRAPH_UNKNOWN_DIM;
  const auto f32 = tensor_info::data_type::f32;
  const auto dense = tensor_info::layout_type::strided;
  const auto constant = tensor_info::property_type::constant;
  const auto undef = tensor_info::layout_type::undef;
  tensor_info src(0, f32, {any, kIn}, undef), hidden(3, f32, {any, kHidden}, undef), active(4, f32, {any, kHidden}, undef);
  tensor_info first(1, f32, {kIn, kHidden}, dense, constant), bias(2, f32, {kHidden}, dense, constant);
  tensor_info second(5, f32, {kHidden, kOut}, dense, constant), dst(6, f32, {any, kOut}, undef);

  graph g(engine::kind::cpu);
  g.add_op(op(0, op::kind::MatMul, {src, first, bias}, {hidden}));
  g.add_op(op(1, op::kind::GELU, {hidden}, {active}));
  g.add_op(op(2, op::kind::MatMul, {active, second}, {dst}));
  g.finalize();
  const auto partitions = g.get_partitions();
  if (partitions.size() != 1) return 1;  // all three ops run together

  engine cpu(engine::kind::cpu, 0);
  stream s(cpu);
  std::vector<float> w1(kIn * kHidden, 0.01f), b1(kHidden, -0.1f), w2(kHidden * kOut, 0.02f), one_row;
  for (const int64_t batch : {1, 7, 64, 7}) {
    const tensor_info given(0, f32, {batch, kIn}, dense), made(6, f32, {batch, kOut}, dense);
    const auto start = std::chrono::steady_clock::now();
    const compiled_partition compiled = partitions[0].compile({given, first, bias, second}, {made}, cpu);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::vector<float> x(static_cast<size_t>(batch * kIn), 0.5f), y(static_cast<size_t>(batch * kOut));
    compiled.execute(s, {{given, cpu, x.data()}, {first, cpu, w1.data()}, {bias, cpu, b1.data()}, {second, cpu, w2.data()}},
                     {{made, cpu, y.data()}});
    s.wait();
    std::printf("batch %2lld: compiled in %.2f ms, dst[0] %g\n", static_cast<long long>(batch), took.count(), y[0]);
    // A row has the same bits alone and in a batch.
    if (one_row.empty()) one_row.assign(y.begin(), y.begin() + kOut);
    for (int64_t i = 0; i < batch * kOut; ++i)
      if (y[static_cast<size_t>(i)] != one_row[static_cast<size_t>(i % kOut)]) return 1;
  }
  return 0;
}
