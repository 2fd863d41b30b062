// The smallest user of the installed package: one ReLU, compiled and executed.
#include <graph/lamina.hpp>

namespace dnnl = lamina;
using dnnl::graph::logical_tensor;

int main() {
  const logical_tensor x(0, logical_tensor::data_type::f32, {2}, logical_tensor::layout_type::strided);
  const logical_tensor y(1, logical_tensor::data_type::f32, {2}, logical_tensor::layout_type::strided);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const dnnl::stream stream(engine);
  const dnnl::graph::partition relu({0, dnnl::graph::op::kind::ReLU, {x}, {y}, "relu"}, dnnl::engine::kind::cpu);
  float in[] = {-1, 2}, out[] = {5, 5};
  relu.compile({x}, {y}, engine).execute(stream, {{x, engine, in}}, {{y, engine, out}});
  return out[0] == 0 && out[1] == 2 ? 0 : 1;
}
