#include "api/layer_norm_graph.h"

#include <numeric>

#include "compiler/partitioning.h"
#include "interface/status.h"

namespace lamina::api {

namespace {

using Arg = lamina_layer_norm_arg_t;

// Adds ops in sequence; each result is a new tensor unless the caller passes one.
class GraphWriter {
 public:
  explicit GraphWriter(const LayerNormProblem& problem) : problem_(problem) {}

  const LogicalTensor& arg(Arg position) const { return *problem_[position]; }

  LogicalTensor fresh(DataType type, const LogicalTensor& like) {
    LogicalTensor tensor;
    tensor.id = next_id_++;
    tensor.dtype = type;
    tensor.shape = like.shape;
    return tensor;
  }

  void add(OpKind kind, Attributes attributes, const std::vector<LogicalTensor>& inputs,
           const std::vector<LogicalTensor>& outputs) {
    const auto id = static_cast<uint64_t>(graph_.ops().size());
    graph_.add_op(id, kind, std::string(lamina::name_of(kind)), std::move(attributes), inputs, outputs);
  }

  // `tensor` converted to floating type `type`: a new tensor, unless it already has that type. Conversions between two 16-bit
  // types go through f32.
  LogicalTensor as(DataType type, const LogicalTensor& tensor) {
    if (tensor.dtype == type) return tensor;
    const LogicalTensor result = fresh(type, tensor);
    cast(tensor, result);
    return result;
  }
  void cast(const LogicalTensor& from, const LogicalTensor& to) {
    const bool detour = bytes_of(from.dtype, 1) == 2 && bytes_of(to.dtype, 1) == 2;
    add(OpKind::TypeCast, {}, {detour ? as(DataType::f32, from) : from}, {to});
  }

  // The real values of src: s8 and u8 are dequantized to f32.
  LogicalTensor dequantized(const LogicalTensor& tensor) {
    if (!is_byte_integer(tensor.dtype)) return tensor;
    const LogicalTensor result = fresh(DataType::f32, tensor);
    if (problem_[lamina_layer_norm_src_scale]) {
      add(OpKind::DynamicDequantize, {}, {tensor, arg(lamina_layer_norm_src_scale)}, {result});
    } else {
      add(OpKind::Dequantize, {{"scales", std::vector<float>{1}}}, {tensor}, {result});
    }
    return result;
  }

  // Writes `tensor` to `target`, which may have any type.
  void convert(const LogicalTensor& tensor, const LogicalTensor& target) {
    if (!is_byte_integer(target.dtype)) return cast(tensor, target);
    const LogicalTensor numbers = as(DataType::f32, tensor);
    if (problem_[lamina_layer_norm_dst_scale]) {
      add(OpKind::DynamicQuantize, {}, {numbers, arg(lamina_layer_norm_dst_scale)}, {target});
    } else {
      add(OpKind::Quantize, {{"scales", std::vector<float>{1}}}, {numbers}, {target});
    }
  }

  // The tensor that an op should write so that `target` gets its value: itself, or one that `deliver` converts.
  LogicalTensor in_type(DataType type, const LogicalTensor& target) {
    if (target.dtype == type) return target;
    deliveries_.emplace_back(fresh(type, target), target);
    return deliveries_.back().first;
  }
  void deliver() {
    for (const auto& [made, target] : deliveries_) convert(made, target);
    deliveries_.clear();
  }

  Graph finish() {
    deliver();
    graph_.finalize();
    return std::move(graph_);
  }

 private:
  const LayerNormProblem& problem_;
  Graph graph_;
  uint64_t next_id_ = kLayerNormArgs + kLayerNormConstants;
  std::vector<std::pair<LogicalTensor, LogicalTensor>> deliveries_;
};

// The type that the norm itself runs in: the type of the data if all have the same, else f64 or f32.
DataType norm_type(std::initializer_list<const LogicalTensor*> data) {
  DataType common = (*data.begin())->dtype;
  bool same = !is_byte_integer(common), quantized = false, wide = false;
  for (const LogicalTensor* tensor : data) {
    same = same && tensor->dtype == common;
    quantized = quantized || is_byte_integer(tensor->dtype);
    wide = wide || tensor->dtype == DataType::f64;
  }
  if (same) return common;
  return wide && !quantized ? DataType::f64 : DataType::f32;
}

// gamma, beta and statistics are f64 with f64 data, else f32.
DataType small_type(DataType norm) { return norm == DataType::f64 ? DataType::f64 : DataType::f32; }

// Writes LayerNorm, with a Multiply or Add after it if only one of scale and shift is given.
void write_forward(GraphWriter& graph, const LayerNormProblem& problem) {
  const LogicalTensor& src = graph.arg(lamina_layer_norm_src);
  const LogicalTensor& dst = graph.arg(lamina_layer_norm_dst);
  const bool scaled = problem.has(lamina_layer_norm_use_scale), shifted = problem.has(lamina_layer_norm_use_shift);
  const bool alone = scaled != shifted;
  DataType type = norm_type({&src, &dst});
  const DataType small = small_type(type);
  if (alone) type = small;  // Multiply and Add use one type for all tensors

  std::vector<LogicalTensor> inputs{graph.as(type, graph.dequantized(src))};
  if (scaled && shifted) {
    inputs.push_back(graph.as(small, graph.arg(lamina_layer_norm_scale)));
    inputs.push_back(graph.as(small, graph.arg(lamina_layer_norm_shift)));
  }
  const bool given_stats = problem.has(lamina_layer_norm_use_stats), kept_stats = problem.wants(lamina_layer_norm_output_stats);
  if (given_stats) {
    for (const Arg statistic : {lamina_layer_norm_mean, lamina_layer_norm_variance})
      inputs.push_back(graph.as(small, graph.arg(statistic)));
  }
  const LogicalTensor result = graph.in_type(type, dst);
  const LogicalTensor normalized = alone ? graph.fresh(type, dst) : result;
  std::vector<LogicalTensor> outputs{normalized};
  if (kept_stats) {
    for (const Arg statistic : {lamina_layer_norm_mean, lamina_layer_norm_variance})
      outputs.push_back(graph.in_type(small, graph.arg(statistic)));
  }
  graph.add(OpKind::LayerNorm,
            {{"keep_stats", kept_stats},
             {"use_stats", given_stats},
             {"use_affine", scaled && shifted},
             {"epsilon", problem.epsilon},
             {"begin_norm_axis", problem.begin_norm_axis}},
            inputs, outputs);
  if (alone) {
    const Arg argument = scaled ? lamina_layer_norm_scale : lamina_layer_norm_shift;
    graph.add(scaled ? OpKind::Multiply : OpKind::Add, {}, {normalized, graph.as(type, graph.arg(argument))}, {result});
  }
}

LogicalTensor constant(uint64_t id, DataType type, const LogicalTensor& like) {
  LogicalTensor tensor;
  tensor.id = id;
  tensor.dtype = type;
  tensor.shape = like.shape;
  tensor.layout = LayoutType::strided;
  tensor.strides.assign(like.shape->size(), 0);
  return tensor;
}

std::string text_of(lamina_layer_norm_stats_kind_t kind) {
  return kind == lamina_layer_norm_stats_rstd ? "rstd" : kind == lamina_layer_norm_stats_std ? "std" : "variance";
}

// diff_src for statistics that do not depend on src: a forward pass with mean 0, applied to diff_dst.
void write_gradient_through_constants(GraphWriter& graph, const LayerNormProblem& problem, const LogicalTensor& diff_dst,
                                      DataType type) {
  const DataType small = small_type(type);
  const bool scaled = problem.has(lamina_layer_norm_use_scale);
  if (scaled) type = small;
  const LogicalTensor& variance = graph.arg(lamina_layer_norm_variance);
  const LogicalTensor result = graph.in_type(type, graph.arg(lamina_layer_norm_diff_src));
  const LogicalTensor divided = scaled ? graph.fresh(type, result) : result;
  graph.add(OpKind::LayerNorm,
            {{"keep_stats", false},
             {"use_stats", true},
             {"use_affine", false},
             {"epsilon", problem.epsilon},
             {"begin_norm_axis", problem.begin_norm_axis}},
            {graph.as(type, diff_dst), constant(kZero, small, variance), graph.as(small, variance)}, {divided});
  if (scaled) graph.add(OpKind::Multiply, {}, {divided, graph.as(type, graph.arg(lamina_layer_norm_scale))}, {result});
}

void write_backward(GraphWriter& graph, const LayerNormProblem& problem) {
  const LogicalTensor& src = graph.arg(lamina_layer_norm_src);
  const LogicalTensor& diff_dst = graph.arg(lamina_layer_norm_diff_dst);
  const bool wants_src = problem.wants(lamina_layer_norm_output_diff_src);
  const bool to_scale = problem.wants(lamina_layer_norm_output_diff_scale);
  const bool to_shift = problem.wants(lamina_layer_norm_output_diff_shift);
  const DataType type = norm_type({&src, &diff_dst, wants_src ? &graph.arg(lamina_layer_norm_diff_src) : &src});
  const DataType small = small_type(type);

  const bool given_stats = problem.has(lamina_layer_norm_use_stats), scaled = problem.has(lamina_layer_norm_use_scale);
  const bool normalized = problem.has(lamina_layer_norm_src_is_normalized);
  const bool constant_stats = problem.has(lamina_layer_norm_stats_are_constant);
  if (constant_stats && wants_src) write_gradient_through_constants(graph, problem, diff_dst, type);
  const bool to_src = wants_src && !constant_stats;
  if (!to_src && !to_scale && !to_shift) return;

  std::vector<LogicalTensor> inputs{graph.as(type, src), graph.as(type, diff_dst)};
  if (given_stats && !normalized) inputs.push_back(graph.as(small, graph.arg(lamina_layer_norm_mean)));
  if (given_stats) inputs.push_back(graph.as(small, graph.arg(lamina_layer_norm_variance)));
  if (scaled)
    inputs.push_back(graph.as(small, graph.arg(lamina_layer_norm_scale)));
  else if (to_shift)
    inputs.push_back(constant(kOne, small, graph.arg(lamina_layer_norm_diff_shift)));

  const auto output = [&](bool wanted, Arg arg, DataType as) {
    return wanted ? graph.in_type(as, graph.arg(arg)) : LogicalTensor{};
  };
  std::vector<LogicalTensor> outputs{output(to_src, lamina_layer_norm_diff_src, type)};
  if (to_scale || to_shift) outputs.push_back(output(to_scale, lamina_layer_norm_diff_scale, small));
  if (to_shift) outputs.push_back(output(to_shift, lamina_layer_norm_diff_shift, small));
  graph.add(OpKind::LayerNormBackward,
            {{"use_stats", given_stats},
             {"use_affine", scaled || to_shift},
             {"epsilon", problem.epsilon},
             {"begin_norm_axis", problem.begin_norm_axis},
             {"stats_kind", text_of(problem.stats_kind)},
             {"src_kind", std::string(normalized ? "normalized" : "raw")}},
            inputs, outputs);
}

void require_supported(const Graph& graph, const Backend& backend) {
  for (const Op& op : graph.ops()) {
    if (const std::string why = backend.why_unsupported(graph, op); !why.empty())
      throw Error(Status::unimplemented, join("layer norm: ", describe(op), ": ", why));
  }
}

}  // namespace

Partition layer_norm_partition(const LayerNormProblem& problem, const Backend& backend) {
  GraphWriter writer(problem);
  if (problem.pass == lamina_layer_norm_forward)
    write_forward(writer, problem);
  else
    write_backward(writer, problem);
  Partition partition;
  partition.graph = std::make_shared<const Graph>(writer.finish());
  require_supported(*partition.graph, backend);
  partition.id = compiler::next_id();
  partition.ops.resize(partition.graph->ops().size());
  std::iota(partition.ops.begin(), partition.ops.end(), 0);
  partition.inputs = partition.graph->inputs();
  for (size_t arg = 0; arg < kLayerNormArgs; ++arg) {
    if (problem.is_output(static_cast<Arg>(arg))) partition.outputs.push_back(*partition.graph->find_value(arg));
  }
  partition.reasons.resize(partition.ops.size());
  return partition;
}

}  // namespace lamina::api
