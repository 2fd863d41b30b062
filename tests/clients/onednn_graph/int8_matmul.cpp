// A client of oneDNN Graph: a product of quantised matrices (Quantize, Dequantize of both factors, MatMul, Quantize) whose
// bytes are compared with plain loops.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "client.h"

namespace {

constexpr int64_t kRows = 6, kInner = 16, kColumns = 10;
constexpr float kSourceScale = 1.0f / 64, kWeightScale = 1.0f / 128, kResultScale = 1.0f / 16;
constexpr int64_t kSourceZero = 3;

using data_type = logical_tensor::data_type;

logical_tensor tensor_of(size_t id, data_type type, int64_t rows, int64_t columns) {
  return {id, type, logical_tensor::dims{rows, columns}, logical_tensor::layout_type::strided};
}

op quantization(size_t id, op::kind kind, const logical_tensor& from, const logical_tensor& to, float scale, int64_t zero) {
  op made(id, kind, {from}, {to}, "quantization");
  made.set_attr<std::vector<float>>(op::attr::scales, {scale});
  made.set_attr<std::vector<int64_t>>(op::attr::zps, {zero});
  made.set_attr<std::string>(op::attr::qtype, "per_tensor");
  return made;
}

}  // namespace

int main() {
  Client client;
  const logical_tensor src = tensor_of(0, data_type::u8, kRows, kInner),
                       weights = tensor_of(1, data_type::s8, kInner, kColumns);
  const logical_tensor real_src = tensor_of(2, data_type::f32, kRows, kInner),
                       real_weights = tensor_of(3, data_type::f32, kInner, kColumns),
                       product = tensor_of(4, data_type::f32, kRows, kColumns),
                       dst = tensor_of(5, data_type::s8, kRows, kColumns);
  graph g(dnnl::engine::kind::cpu);
  g.add_op(quantization(1, op::kind::Dequantize, src, real_src, kSourceScale, kSourceZero));
  g.add_op(quantization(2, op::kind::Dequantize, weights, real_weights, kWeightScale, 0));
  g.add_op(op(3, op::kind::MatMul, {real_src, real_weights}, {product}, "matmul"));
  g.add_op(quantization(4, op::kind::Quantize, product, dst, kResultScale, 0));
  g.finalize();
  const std::vector<partition> partitions = g.get_partitions();
  client.expect(partitions.size() == 1, "one partition");
  client.expect(partitions.at(0).is_supported(), "supported");
  client.expect(partitions.at(0).get_ops_num() == 4, "of four operations");

  std::vector<uint8_t> source(kRows * kInner);
  std::vector<int8_t> factor(kInner * kColumns), found(kRows * kColumns);
  // Up to 127: without instructions for products of bytes, oneDNN's sums of two products saturate at 16 bits.
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 37 % 128);
  for (size_t i = 0; i < factor.size(); ++i) factor[i] = static_cast<int8_t>(static_cast<int>(i * 53 % 256) - 128);
  const compiled_partition compiled = partitions[0].compile({src, weights}, {dst}, client.engine);
  client.expect(compiled.query_logical_tensor(5).get_mem_size() == found.size(), "a byte each");
  compiled.execute(client.stream, {tensor(src, client.engine, source.data()), tensor(weights, client.engine, factor.data())},
                   {tensor(dst, client.engine, found.data())});
  client.stream.wait();

  int wrong = 0;
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column) {
      int64_t sum = 0;
      for (int64_t i = 0; i < kInner; ++i) sum += (source[row * kInner + i] - kSourceZero) * factor[i * kColumns + column];
      const double exact = static_cast<double>(sum) * kSourceScale * kWeightScale / kResultScale;  // powers of two: exact
      const double rounded = std::clamp(std::nearbyint(exact), -128.0, 127.0);
      wrong += found[row * kColumns + column] != static_cast<int8_t>(rounded) ? 1 : 0;
    }
  client.expect(wrong == 0, "every byte");
  return client.exit_code();
}
