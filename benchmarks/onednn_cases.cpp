#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_graph.hpp>
#include <unordered_map>

#include "contenders.h"

namespace bench {

namespace {

using dnnl::memory;
using dnnl::normalization_flags;
using dnnl::prop_kind;

// A primitive with its arguments.
struct Call {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
};

Contender contender_of(std::string name, const dnnl::engine& engine, std::vector<Call> calls) {
  return {std::move(name), [stream = dnnl::stream(engine), calls = std::move(calls)]() mutable {
            for (const Call& call : calls) call.primitive.execute(stream, call.arguments);
            stream.wait();
          }};
}

struct Setting {
  Setting(const Problem& problem, const Inputs& inputs, const Outputs& outputs)
      : big({problem.rows, problem.columns}, problem.type == Type::f32 ? memory::data_type::f32 : memory::data_type::bf16,
            memory::format_tag::ab),
        row({problem.columns}, memory::data_type::f32, memory::format_tag::a),
        column({problem.rows}, memory::data_type::f32, memory::format_tag::a),
        in(inputs),
        out(outputs) {}
  memory at(const memory::desc& description, const Buffer& buffer) const { return {description, engine, buffer.data()}; }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  memory::desc big, row, column;
  const Inputs& in;
  const Outputs& out;
};

const auto kAffine = normalization_flags::use_scale | normalization_flags::use_shift;

dnnl::layer_normalization_forward::primitive_desc describe_forward(const Setting& s, prop_kind kind,
                                                                   const dnnl::primitive_attr& attributes = {}) {
  return {s.engine, kind, s.big, s.big, s.column, kEpsilon, kAffine, attributes};
}

std::vector<Contender> forward(const Setting& s) {
  const dnnl::layer_normalization_forward norm(describe_forward(s, prop_kind::forward_training));
  return {contender_of("oneDNN", s.engine,
                       {{norm,
                         {{DNNL_ARG_SRC, s.at(s.big, s.in.src)},
                          {DNNL_ARG_DST, s.at(s.big, s.out.big)},
                          {DNNL_ARG_SCALE, s.at(s.row, s.in.gamma)},
                          {DNNL_ARG_SHIFT, s.at(s.row, s.in.beta)},
                          {DNNL_ARG_MEAN, s.at(s.column, s.out.first_small)},
                          {DNNL_ARG_VARIANCE, s.at(s.column, s.out.second_small)}}}})};
}

std::vector<Contender> backward(const Setting& s) {
  const dnnl::layer_normalization_backward norm({s.engine, prop_kind::backward, s.big, s.big, s.big, s.column, kEpsilon,
                                                 kAffine, describe_forward(s, prop_kind::forward_training)});
  return {contender_of("oneDNN", s.engine,
                       {{norm,
                         {{DNNL_ARG_SRC, s.at(s.big, s.in.src)},
                          {DNNL_ARG_DIFF_DST, s.at(s.big, s.in.diff_dst)},
                          {DNNL_ARG_MEAN, s.at(s.column, s.in.mean)},
                          {DNNL_ARG_VARIANCE, s.at(s.column, s.in.variance)},
                          {DNNL_ARG_SCALE, s.at(s.row, s.in.gamma)},
                          {DNNL_ARG_SHIFT, s.at(s.row, s.in.beta)},
                          {DNNL_ARG_DIFF_SRC, s.at(s.big, s.out.big)},
                          {DNNL_ARG_DIFF_SCALE, s.at(s.row, s.out.first_small)},
                          {DNNL_ARG_DIFF_SHIFT, s.at(s.row, s.out.second_small)}}}})};
}

// ---- Add -> LayerNorm -> GELU

Call add_into_dst(const Setting& s) {
  const dnnl::binary add({s.engine, dnnl::algorithm::binary_add, s.big, s.big, s.big});
  return {add,
          {{DNNL_ARG_SRC_0, s.at(s.big, s.in.src)},
           {DNNL_ARG_SRC_1, s.at(s.big, s.in.other)},
           {DNNL_ARG_DST, s.at(s.big, s.out.big)}}};
}

Call norm_in_place(const Setting& s, const dnnl::primitive_attr& attributes) {
  const dnnl::layer_normalization_forward norm(describe_forward(s, prop_kind::forward_inference, attributes));
  return {norm,
          {{DNNL_ARG_SRC, s.at(s.big, s.out.big)},
           {DNNL_ARG_DST, s.at(s.big, s.out.big)},
           {DNNL_ARG_SCALE, s.at(s.row, s.in.gamma)},
           {DNNL_ARG_SHIFT, s.at(s.row, s.in.beta)}}};
}

Call gelu_in_place(const Setting& s) {
  const dnnl::eltwise_forward gelu(
      {s.engine, prop_kind::forward_inference, dnnl::algorithm::eltwise_gelu_erf, s.big, s.big, 0.0f, 0.0f});
  return {gelu, {{DNNL_ARG_SRC, s.at(s.big, s.out.big)}, {DNNL_ARG_DST, s.at(s.big, s.out.big)}}};
}

dnnl::primitive_attr gelu_as_post_op() {
  dnnl::post_ops gelu;
  gelu.append_eltwise(dnnl::algorithm::eltwise_gelu_erf, 0.0f, 0.0f);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(gelu);
  return attributes;
}

// Each partition of the graph, run one after the other; what passes between them has memory of its own.
Contender chain_by_graph(const Setting& s, const Problem& problem) {
  using namespace dnnl::graph;
  const auto type = problem.type == Type::f32 ? logical_tensor::data_type::f32 : logical_tensor::data_type::bf16;
  const auto big = [&](size_t id) {
    return logical_tensor(id, type, {problem.rows, problem.columns}, logical_tensor::layout_type::strided);
  };
  const auto row = [&](size_t id) {
    return logical_tensor(id, logical_tensor::data_type::f32, logical_tensor::dims{problem.columns},
                          logical_tensor::layout_type::strided);
  };
  op add(0, op::kind::Add, {big(0), big(1)}, {big(2)}, "add");
  op norm(1, op::kind::LayerNorm, {big(2), row(3), row(4)}, {big(5)}, "norm");
  norm.set_attr<bool>(op::attr::keep_stats, false).set_attr<float>(op::attr::epsilon, kEpsilon);
  op gelu(2, op::kind::GELU, {big(5)}, {big(6)}, "gelu");
  graph g(dnnl::engine::kind::cpu);
  for (const op& each : {add, norm, gelu}) g.add_op(each);
  g.finalize();

  const auto inner = std::make_shared<std::vector<Buffer>>();
  inner->emplace_back(problem.bytes());
  inner->emplace_back(problem.bytes());
  const std::unordered_map<size_t, void*> memory_of = {{0, s.in.src.data()},   {1, s.in.other.data()}, {2, inner->at(0).data()},
                                                       {3, s.in.gamma.data()}, {4, s.in.beta.data()},  {5, inner->at(1).data()},
                                                       {6, s.out.big.data()}};
  struct Step {
    compiled_partition compiled;
    std::vector<tensor> in, out;
  };
  std::vector<Step> steps;
  for (const partition& p : g.get_partitions()) {
    Step step{p.compile(p.get_input_ports(), p.get_output_ports(), s.engine), {}, {}};
    for (const logical_tensor& lt : p.get_input_ports()) step.in.emplace_back(lt, s.engine, memory_of.at(lt.get_id()));
    for (const logical_tensor& lt : p.get_output_ports()) step.out.emplace_back(lt, s.engine, memory_of.at(lt.get_id()));
    steps.push_back(std::move(step));
  }
  return {"oneDNN graph", [stream = dnnl::stream(s.engine), steps = std::move(steps), inner]() mutable {
            for (const Step& step : steps) step.compiled.execute(stream, step.in, step.out);
            stream.wait();
          }};
}

std::vector<Contender> chain(const Setting& s, const Problem& problem) {
  std::vector<Contender> ways = {
      contender_of("oneDNN primitives", s.engine, {add_into_dst(s), norm_in_place(s, {}), gelu_in_place(s)})};
  try {
    ways.push_back(contender_of("oneDNN post-op", s.engine, {add_into_dst(s), norm_in_place(s, gelu_as_post_op())}));
  } catch (const dnnl::error&) {
    // This version has no post-ops on layer normalisation.
  }
  ways.push_back(chain_by_graph(s, problem));
  return ways;
}

}  // namespace

std::vector<Contender> onednn_contenders(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs) {
  const Setting setting(problem, inputs, outputs);
  switch (which) {
    case Case::forward:
      return forward(setting);
    case Case::backward:
      return backward(setting);
    case Case::chain:
      return chain(setting, problem);
  }
  return {};
}

}  // namespace bench
