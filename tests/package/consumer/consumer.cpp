// The smallest user of the installed package: one ReLU, compiled and executed, and one MatMul, which may need another library.
#include <graph/lamina.hpp>
#include <vector>

namespace dnnl = lamina;
using dnnl::graph::logical_tensor;

using dnnl::graph::op;

// Whether an op of two floats returns the expected result.
bool gives(op::kind kind, const std::vector<logical_tensor>& in, const std::vector<const float*>& data, float first,
           float second) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const dnnl::stream stream(engine);
  const logical_tensor dst(9, logical_tensor::data_type::f32, {1, 2}, logical_tensor::layout_type::strided);
  const dnnl::graph::partition partition({0, kind, in, {dst}, "op"}, dnnl::engine::kind::cpu);
  std::vector<dnnl::graph::tensor> tensors;
  for (size_t i = 0; i < in.size(); ++i) tensors.emplace_back(in[i], engine, const_cast<float*>(data[i]));
  float out[] = {5, 5};
  partition.compile(in, {dst}, engine).execute(stream, tensors, {{dst, engine, out}});
  return out[0] == first && out[1] == second;
}

int main() {
  const auto strided = logical_tensor::layout_type::strided;
  const logical_tensor x(0, logical_tensor::data_type::f32, {1, 2}, strided),
      y(9, logical_tensor::data_type::f32, {1, 2}, strided), w(1, logical_tensor::data_type::f32, {2, 2}, strided);
  const float in[] = {-1, 2}, weights[] = {1, 2, 3, 4};
  if (!gives(op::kind::ReLU, {x}, {in}, 0, 2)) return 1;
  const dnnl::graph::partition product({0, op::kind::MatMul, {x, w}, {y}, "product"}, dnnl::engine::kind::cpu);
  return !product.is_supported() || gives(op::kind::MatMul, {x, w}, {in, weights}, 5, 6) ? 0 : 2;
}
