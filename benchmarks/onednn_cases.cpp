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

memory::data_type onednn_type(Type type) {
  switch (type) {
    case Type::bf16: return memory::data_type::bf16;
    case Type::f16: return memory::data_type::f16;
    case Type::s8: return memory::data_type::s8;
    default: return memory::data_type::f32;
  }
}

struct Setting {
  Setting(const Problem& a_problem, const Inputs& inputs, const Outputs& outputs)
      : big({a_problem.rows, a_problem.columns}, onednn_type(a_problem.type), memory::format_tag::ab),
        row({a_problem.columns}, memory::data_type::f32, memory::format_tag::a),
        column({a_problem.rows}, memory::data_type::f32, memory::format_tag::a),
        problem(a_problem),
        in(inputs),
        out(outputs) {}
  memory at(const memory::desc& description, const Buffer& buffer) const { return {description, engine, buffer.data()}; }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  memory::desc big, row, column;
  Problem problem;
  const Inputs& in;
  const Outputs& out;
};

Contender contender_of(std::string name, const Setting& s, std::vector<Call> calls) {
  return {std::move(name), [stream = dnnl::stream(s.engine), calls = std::move(calls)]() mutable {
            for (const Call& call : calls) call.primitive.execute(stream, call.arguments);
            stream.wait();
          }};
}

// ---- primitives

const auto kAffine = normalization_flags::use_scale | normalization_flags::use_shift;

dnnl::layer_normalization_forward::primitive_desc describe_forward(const Setting& s, prop_kind kind,
                                                                   const dnnl::primitive_attr& attributes = {}) {
  return {s.engine, kind, s.big, s.big, s.column, kEpsilon, kAffine, attributes};
}

Call norm(const Setting& s, const Buffer& from, const Buffer& to, const dnnl::primitive_attr& attributes = {}) {
  return {dnnl::layer_normalization_forward(describe_forward(s, prop_kind::forward_inference, attributes)),
          {{DNNL_ARG_SRC, s.at(s.big, from)},
           {DNNL_ARG_DST, s.at(s.big, to)},
           {DNNL_ARG_SCALE, s.at(s.row, s.in.gamma)},
           {DNNL_ARG_SHIFT, s.at(s.row, s.in.beta)}}};
}

Call norm_with_stats(const Setting& s) {
  return {dnnl::layer_normalization_forward(describe_forward(s, prop_kind::forward_training)),
          {{DNNL_ARG_SRC, s.at(s.big, s.in.src)},
           {DNNL_ARG_DST, s.at(s.big, s.out.big)},
           {DNNL_ARG_SCALE, s.at(s.row, s.in.gamma)},
           {DNNL_ARG_SHIFT, s.at(s.row, s.in.beta)},
           {DNNL_ARG_MEAN, s.at(s.column, s.out.first_small)},
           {DNNL_ARG_VARIANCE, s.at(s.column, s.out.second_small)}}};
}

Call norm_backward(const Setting& s) {
  return {dnnl::layer_normalization_backward({s.engine, prop_kind::backward, s.big, s.big, s.big, s.column, kEpsilon, kAffine,
                                              describe_forward(s, prop_kind::forward_training)}),
          {{DNNL_ARG_SRC, s.at(s.big, s.in.src)},
           {DNNL_ARG_DIFF_DST, s.at(s.big, s.in.diff_dst)},
           {DNNL_ARG_MEAN, s.at(s.column, s.in.mean)},
           {DNNL_ARG_VARIANCE, s.at(s.column, s.in.variance)},
           {DNNL_ARG_SCALE, s.at(s.row, s.in.gamma)},
           {DNNL_ARG_SHIFT, s.at(s.row, s.in.beta)},
           {DNNL_ARG_DIFF_SRC, s.at(s.big, s.out.big)},
           {DNNL_ARG_DIFF_SCALE, s.at(s.row, s.out.first_small)},
           {DNNL_ARG_DIFF_SHIFT, s.at(s.row, s.out.second_small)}}};
}

Call add(const Setting& s, const Buffer& to) {
  return {
      dnnl::binary({s.engine, dnnl::algorithm::binary_add, s.big, s.big, s.big}),
      {{DNNL_ARG_SRC_0, s.at(s.big, s.in.src)}, {DNNL_ARG_SRC_1, s.at(s.big, s.in.other)}, {DNNL_ARG_DST, s.at(s.big, to)}}};
}

Call gelu_in_place(const Setting& s, const Buffer& buffer) {
  return {dnnl::eltwise_forward(
              {s.engine, prop_kind::forward_inference, dnnl::algorithm::eltwise_gelu_erf, s.big, s.big, 0.0f, 0.0f}),
          {{DNNL_ARG_SRC, s.at(s.big, buffer)}, {DNNL_ARG_DST, s.at(s.big, buffer)}}};
}

Call quantize(const Setting& s, const Buffer& from) {
  const memory::desc s8({s.problem.rows, s.problem.columns}, memory::data_type::s8, memory::format_tag::ab);
  dnnl::primitive_attr attributes;
  attributes.set_scales_mask(DNNL_ARG_DST, 0);
  const memory scale({{1}, memory::data_type::f32, memory::format_tag::a}, s.engine);
  *static_cast<float*>(scale.get_data_handle()) = kQuantizeScale;
  return {
      dnnl::reorder({s.engine, s.big, s.engine, s8, attributes}),
      {{DNNL_ARG_FROM, s.at(s.big, from)}, {DNNL_ARG_TO, s.at(s8, s.out.big)}, {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, scale}}};
}

Call softmax(const Setting& s) {
  return {dnnl::softmax_forward({s.engine, prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, s.big, s.big, 1}),
          {{DNNL_ARG_SRC, s.at(s.big, s.in.src)}, {DNNL_ARG_DST, s.at(s.big, s.out.big)}}};
}

dnnl::primitive_attr gelu_as_post_op() {
  dnnl::post_ops gelu;
  gelu.append_eltwise(dnnl::algorithm::eltwise_gelu_erf, 0.0f, 0.0f);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(gelu);
  return attributes;
}

std::vector<Call> primitives_of(Case which, const Setting& s) {
  switch (which) {
    case Case::forward: return {norm(s, s.in.src, s.out.big)};
    case Case::forward_stats: return {norm_with_stats(s)};
    case Case::backward: return {norm_backward(s)};
    case Case::residual: return {add(s, s.out.big), norm(s, s.out.big, s.out.big)};
    case Case::residual_sum: return {add(s, s.out.sum), norm(s, s.out.sum, s.out.big)};
    case Case::chain: return {add(s, s.out.big), norm(s, s.out.big, s.out.big), gelu_in_place(s, s.out.big)};
    case Case::quantized:  // `sum` serves as the intermediate
      return {norm(s, s.in.src, s.out.sum), gelu_in_place(s, s.out.sum), quantize(s, s.out.sum)};
    case Case::softmax: return {softmax(s)};
    case Case::rms_norm:  // oneDNN 3.2 does not have it
      return {};
  }
  return {};
}

// Throws if this version of oneDNN has no post-ops on layer normalisation.
std::vector<Call> post_ops_of(Case which, const Setting& s) {
  if (which == Case::chain) return {add(s, s.out.big), norm(s, s.out.big, s.out.big, gelu_as_post_op())};
  if (which == Case::quantized) return {norm(s, s.in.src, s.out.sum, gelu_as_post_op()), quantize(s, s.out.sum)};
  return {};
}

// ---- the graph interface

using GraphTensor = dnnl::graph::logical_tensor;
using GraphOp = dnnl::graph::op;
constexpr size_t kSrc = 0, kOther = 1, kSum = 2, kGamma = 3, kBeta = 4, kNormed = 5, kActivated = 6, kDst = 7;

std::vector<GraphOp> graph_ops_of(Case which, const Problem& problem) {
  using Kind = GraphOp::kind;
  const auto strided = GraphTensor::layout_type::strided;
  const auto type = problem.type == Type::f32   ? GraphTensor::data_type::f32
                    : problem.type == Type::f16 ? GraphTensor::data_type::f16
                                                : GraphTensor::data_type::bf16;
  const GraphTensor::dims shape = {problem.rows, problem.columns}, columns = {problem.columns};
  const auto big = [&](size_t id) { return GraphTensor(id, type, shape, strided); };
  const auto row = [&](size_t id) { return GraphTensor(id, GraphTensor::data_type::f32, columns, strided); };
  const auto norm_op = [&](size_t from, size_t to) {
    GraphOp op(1, Kind::LayerNorm, {big(from), row(kGamma), row(kBeta)}, {big(to)}, "norm");
    op.set_attr<bool>(GraphOp::attr::keep_stats, false).set_attr<float>(GraphOp::attr::epsilon, kEpsilon);
    return op;
  };
  const GraphOp add_op(0, Kind::Add, {big(kSrc), big(kOther)}, {big(kSum)}, "add");
  const auto gelu_op = [&](size_t to) { return GraphOp(2, Kind::GELU, {big(kNormed)}, {big(to)}, "gelu"); };
  switch (which) {
    case Case::residual: return {add_op, norm_op(kSum, kDst)};
    case Case::chain: return {add_op, norm_op(kSum, kNormed), gelu_op(kDst)};
    case Case::quantized: {
      GraphOp op(3, Kind::Quantize, {big(kActivated)}, {{kDst, GraphTensor::data_type::s8, shape, strided}}, "quantize");
      op.set_attr<std::vector<float>>(GraphOp::attr::scales, {kQuantizeScale})
          .set_attr<std::vector<int64_t>>(GraphOp::attr::zps, {0});
      return {norm_op(kSrc, kNormed), gelu_op(kActivated), op};
    }
    default: return {};
  }
}

// Runs the partitions of the graph one after the other. Values between them are in separate memory.
Contender by_graph(const Setting& s, const std::vector<GraphOp>& ops) {
  using namespace dnnl::graph;
  graph g(dnnl::engine::kind::cpu);
  for (const op& each : ops) g.add_op(each);
  g.finalize();

  std::unordered_map<size_t, void*> memory_of = {{kSrc, s.in.src.data()},
                                                 {kOther, s.in.other.data()},
                                                 {kGamma, s.in.gamma.data()},
                                                 {kBeta, s.in.beta.data()},
                                                 {kDst, s.out.big.data()}};
  const auto inner = std::make_shared<std::vector<Buffer>>();
  const auto tensor_of = [&](const logical_tensor& port) {
    void*& memory = memory_of[port.get_id()];
    if (memory == nullptr) memory = inner->emplace_back(s.problem.bytes()).data();
    return tensor(port, s.engine, memory);
  };
  struct Step {
    compiled_partition compiled;
    std::vector<tensor> in, out;
  };
  std::vector<Step> steps;
  for (const partition& p : g.get_partitions()) {
    Step step{p.compile(p.get_input_ports(), p.get_output_ports(), s.engine), {}, {}};
    for (const logical_tensor& port : p.get_input_ports()) step.in.push_back(tensor_of(port));
    for (const logical_tensor& port : p.get_output_ports()) step.out.push_back(tensor_of(port));
    steps.push_back(std::move(step));
  }
  return {"oneDNN graph", [stream = dnnl::stream(s.engine), steps = std::move(steps), inner]() mutable {
            for (const Step& step : steps) step.compiled.execute(stream, step.in, step.out);
            stream.wait();
          }};
}

// Adds the result of `make`, or nothing if this version of oneDNN cannot do it on this machine.
template <typename Make>
void add_if_possible(std::vector<Contender>& ways, const Make& make) {
  try {
    ways.push_back(make());
  } catch (const dnnl::error&) {
  }
}

}  // namespace

std::vector<Contender> onednn_contenders(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs) {
  if (problem.type == Type::f64 || which == Case::rms_norm) return {};
  const Setting setting(problem, inputs, outputs);
  std::vector<Contender> ways;
  add_if_possible(ways, [&] { return contender_of("oneDNN", setting, primitives_of(which, setting)); });
  if (which == Case::chain || which == Case::quantized) {
    add_if_possible(ways, [&] { return contender_of("oneDNN post-op", setting, post_ops_of(which, setting)); });
  }
  if (const std::vector<GraphOp> ops = graph_ops_of(which, problem); !ops.empty()) {
    add_if_possible(ways, [&] { return by_graph(setting, ops); });
  }
  return ways;
}

std::string onednn_version() {
  const dnnl::version_t* const version = dnnl::version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

}  // namespace bench
