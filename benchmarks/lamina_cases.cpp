#include <stdexcept>

#include "contenders.h"
#include "graph/lamina.hpp"

namespace bench {

namespace {

using namespace lamina::graph;

enum Id : size_t { src, other, sum, normed, dst, gamma, beta, mean, variance, diff_dst, diff_src, diff_gamma, diff_beta };

struct Tensors {
  explicit Tensors(const Problem& problem)
      : type(problem.type == Type::f32 ? logical_tensor::data_type::f32 : logical_tensor::data_type::bf16),
        rows(problem.rows),
        columns(problem.columns) {}
  logical_tensor big(Id id) const { return {id, type, {rows, columns}, logical_tensor::layout_type::strided}; }
  logical_tensor per_column(Id id) const { return f32(id, columns); }
  logical_tensor per_row(Id id) const { return f32(id, rows); }

  logical_tensor::data_type type;
  int64_t rows, columns;

 private:
  static logical_tensor f32(Id id, int64_t size) {
    return {id, logical_tensor::data_type::f32, {size}, logical_tensor::layout_type::strided};
  }
};

op layer_norm(const Tensors& t, Id from, Id to, bool keep_stats) {
  op norm(1, op::kind::LayerNorm, {t.big(from), t.per_column(gamma), t.per_column(beta)}, {t.big(to)}, "norm");
  norm.set_attr(op::attr::keep_stats, keep_stats).set_attr(op::attr::epsilon, kEpsilon);
  if (keep_stats) norm.add_outputs({t.per_row(mean), t.per_row(variance)});
  return norm;
}

std::vector<op> ops_of(Case which, const Tensors& t) {
  switch (which) {
    case Case::forward:
      return {layer_norm(t, src, dst, true)};
    case Case::backward:
      return {op(1, op::kind::LayerNormBackward,
                 {t.big(src), t.big(diff_dst), t.per_row(mean), t.per_row(variance), t.per_column(gamma), t.per_column(beta)},
                 {t.big(diff_src), t.per_column(diff_gamma), t.per_column(diff_beta)}, "backward")
                  .set_attr(op::attr::epsilon, kEpsilon)};
    case Case::chain:
      return {op(0, op::kind::Add, {t.big(src), t.big(other)}, {t.big(sum)}, "add"), layer_norm(t, sum, normed, false),
              op(2, op::kind::GELU, {t.big(normed)}, {t.big(dst)}, "gelu")};
  }
  throw std::logic_error("unknown case");
}

void* memory_of(size_t id, const Inputs& in, const Outputs& out) {
  switch (id) {
    case src:
      return in.src.data();
    case other:
      return in.other.data();
    case gamma:
      return in.gamma.data();
    case beta:
      return in.beta.data();
    case diff_dst:
      return in.diff_dst.data();
    case dst:
    case diff_src:
      return out.big.data();
    case diff_gamma:
      return out.first_small.data();
    case diff_beta:
      return out.second_small.data();
    default:
      throw std::logic_error("a tensor without memory");
  }
}

// Statistics are outputs of the forward and inputs of the backward pass.
void* memory_of(size_t id, bool is_output, const Inputs& in, const Outputs& out) {
  if (id == mean) return is_output ? out.first_small.data() : in.mean.data();
  if (id == variance) return is_output ? out.second_small.data() : in.variance.data();
  return memory_of(id, in, out);
}

}  // namespace

Contender lamina_contender(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs) {
  graph g(engine::kind::cpu);
  for (const op& each : ops_of(which, Tensors(problem))) g.add_op(each);
  g.finalize();
  const auto partitions = g.get_partitions();
  if (partitions.size() != 1) throw std::runtime_error(std::string(name_of(which)) + " was not fused into one partition");

  const engine cpu(engine::kind::cpu, 0);
  const auto in_ports = partitions[0].get_input_ports(), out_ports = partitions[0].get_output_ports();
  std::vector<tensor> in, out;
  for (const logical_tensor& port : in_ports) in.emplace_back(port, cpu, memory_of(port.get_id(), false, inputs, outputs));
  for (const logical_tensor& port : out_ports) out.emplace_back(port, cpu, memory_of(port.get_id(), true, inputs, outputs));
  return {"lamina", [compiled = partitions[0].compile(in_ports, out_ports, cpu), s = stream(cpu), in, out] {
            compiled.execute(s, in, out);
          }};
}

}  // namespace bench
