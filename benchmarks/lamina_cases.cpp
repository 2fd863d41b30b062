#include "lamina_cases.h"

#include <map>
#include <stdexcept>

namespace bench {

namespace {

using namespace lamina::graph;

enum Id : size_t {
  src,
  other,
  sum,
  normed,
  activated,
  dst,
  gamma,
  beta,
  mean,
  variance,
  diff_dst,
  diff_src,
  diff_gamma,
  diff_beta
};

logical_tensor::data_type lamina_type(Type type) {
  switch (type) {
    case Type::f32: return logical_tensor::data_type::f32;
    case Type::bf16: return logical_tensor::data_type::bf16;
    case Type::f16: return logical_tensor::data_type::f16;
    case Type::f64: return logical_tensor::data_type::f64;
    case Type::s8: return logical_tensor::data_type::s8;
  }
  throw std::logic_error("unknown type");
}

struct Tensors {
  Tensors(const Problem& problem, float an_epsilon)
      : epsilon(an_epsilon),
        type(lamina_type(problem.type)),
        small(lamina_type(problem.small_type())),
        rows(problem.rows),
        columns(problem.columns) {}
  logical_tensor big(Id id) const { return big(id, type); }
  logical_tensor big(Id id, logical_tensor::data_type of) const {
    return {id, of, {rows, columns}, logical_tensor::layout_type::strided};
  }
  logical_tensor per_column(Id id) const { return {id, small, {columns}, logical_tensor::layout_type::strided}; }
  logical_tensor per_row(Id id) const { return {id, small, {rows}, logical_tensor::layout_type::strided}; }

  float epsilon;
  logical_tensor::data_type type, small;
  int64_t rows, columns;
};

op layer_norm(const Tensors& t, Id from, Id to, bool keep_stats = false) {
  op norm(1, op::kind::LayerNorm, {t.big(from), t.per_column(gamma), t.per_column(beta)}, {t.big(to)}, "norm");
  norm.set_attr(op::attr::keep_stats, keep_stats).set_attr(op::attr::epsilon, t.epsilon);
  if (keep_stats) norm.add_outputs({t.per_row(mean), t.per_row(variance)});
  return norm;
}

op backward(const Tensors& t) {
  return op(1, op::kind::LayerNormBackward,
            {t.big(src), t.big(diff_dst), t.per_row(mean), t.per_row(variance), t.per_column(gamma), t.per_column(beta)},
            {t.big(diff_src), t.per_column(diff_gamma), t.per_column(diff_beta)}, "backward")
      .set_attr(op::attr::epsilon, t.epsilon);
}

op add(const Tensors& t) { return {0, op::kind::Add, {t.big(src), t.big(other)}, {t.big(sum)}, "add"}; }
op gelu(const Tensors& t, Id to) { return {2, op::kind::GELU, {t.big(normed)}, {t.big(to)}, "gelu"}; }

op quantize(const Tensors& t) {
  return op(3, op::kind::Quantize, {t.big(activated)}, {t.big(dst, logical_tensor::data_type::s8)}, "quantize")
      .set_attr(op::attr::scales, std::vector<float>{kQuantizeScale});
}

std::vector<op> ops_of(Case which, const Tensors& t) {
  switch (which) {
    case Case::forward: return {layer_norm(t, src, dst)};
    case Case::forward_stats: return {layer_norm(t, src, dst, true)};
    case Case::backward: return {backward(t)};
    case Case::residual: return {add(t), layer_norm(t, sum, dst)};
    case Case::residual_sum: return {add(t), layer_norm(t, sum, dst), op(4, op::kind::End, {t.big(sum)}, {}, "end")};
    case Case::chain: return {add(t), layer_norm(t, sum, normed), gelu(t, dst)};
    case Case::quantized: return {layer_norm(t, src, normed), gelu(t, activated), quantize(t)};
    case Case::rms_norm:
      return {op(1, op::kind::RMSNorm, {t.big(src), t.per_column(gamma)}, {t.big(dst)}, "norm")
                  .set_attr(op::attr::epsilon, t.epsilon)};
    case Case::softmax:
      return {op(1, op::kind::SoftMax, {t.big(src)}, {t.big(dst)}, "softmax").set_attr(op::attr::axis, int64_t{-1})};
  }
  throw std::logic_error("unknown case");
}

// Null for values between partitions. Statistics are outputs of the forward pass and inputs of the backward pass.
void* memory_of(size_t id, bool is_output, const Inputs& in, const Outputs& out) {
  switch (id) {
    case src: return in.src.data();
    case other: return in.other.data();
    case gamma: return in.gamma.data();
    case beta: return in.beta.data();
    case diff_dst: return in.diff_dst.data();
    case mean: return is_output ? out.first_small.data() : in.mean.data();
    case variance: return is_output ? out.second_small.data() : in.variance.data();
    case sum: return out.sum.data();
    case dst:
    case diff_src: return out.big.data();
    case diff_gamma: return out.first_small.data();
    case diff_beta: return out.second_small.data();
    default: return nullptr;
  }
}

struct Step {
  compiled_partition compiled;
  std::vector<tensor> in, out;
};

}  // namespace

graph lamina_graph(Case which, const Problem& problem, float epsilon) {
  graph g(engine::kind::cpu);
  for (const op& each : ops_of(which, Tensors(problem, epsilon))) g.add_op(each);
  g.finalize();
  return g;
}

Contender lamina_contender(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs) {
  const engine cpu(engine::kind::cpu, 0);
  std::map<size_t, std::shared_ptr<Buffer>> between;
  const auto tensor_of = [&](const logical_tensor& port, bool is_output) {
    const size_t id = port.get_id();
    if (void* const memory = memory_of(id, is_output, inputs, outputs)) return tensor(port, cpu, memory);
    if (!between.contains(id)) between[id] = std::make_shared<Buffer>(problem.bytes());
    return tensor(port, cpu, between.at(id)->data());
  };
  std::vector<Step> steps;
  for (const partition& part : lamina_graph(which, problem).get_partitions()) {
    if (!part.is_supported()) throw std::runtime_error("a partition of " + std::string(name_of(which)) + " is not supported");
    Step step{part.compile(part.get_input_ports(), part.get_output_ports(), cpu), {}, {}};
    for (const logical_tensor& port : part.get_input_ports()) step.in.push_back(tensor_of(port, false));
    for (const logical_tensor& port : part.get_output_ports()) step.out.push_back(tensor_of(port, true));
    steps.push_back(std::move(step));
  }
  const std::string name = steps.size() == 1 ? "lamina" : "lamina, " + std::to_string(steps.size()) + " partitions";
  return {name,
          [s = stream(cpu), steps = std::move(steps), between = std::move(between)] {
            for (const Step& step : steps) step.compiled.execute(s, step.in, step.out);
          },
          kLaminaSettlingCalls};
}

}  // namespace bench
