#include "lamina/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "interface/op_schema.h"

namespace lamina::driver {
namespace {

// What one op may add, f32 arithmetic taken for granted. oneDNN's own driver allows 5e-7 for norms, 4e-6 or 4e-5 for unary ops,
// 1.2e-6 for SoftMax; a division of labour within one kernel adds up.
constexpr double kOneRounding = 1.2e-7;
constexpr double kReduction = 1e-6;  // ops that reduce, unless the table says otherwise

const std::map<OpKind, double>& op_errors() {
  static const std::map<OpKind, double> table = {
      {OpKind::LayerNorm, 5e-7},
      {OpKind::RMSNorm, 5e-7},
      {OpKind::GroupNorm, 6e-7},
      {OpKind::BatchNormInference, 6e-7},
      {OpKind::BatchNormTrainingBackward, 2e-6},
      {OpKind::SoftMax, 1.2e-6},
      {OpKind::SoftMaxBackward, 4.8e-6},
      {OpKind::LogSoftmax, 1.2e-6},
      {OpKind::LogSoftmaxBackward, 4.8e-6},
      {OpKind::ReduceProd, 4e-6},
      {OpKind::PReLUBackward, 2e-6},
      {OpKind::Exp, 6e-7},
      {OpKind::Log, 6e-7},
      {OpKind::Pow, 2e-6},
      {OpKind::Tanh, 1e-6},
      {OpKind::TanhBackward, 2e-6},
      {OpKind::Sigmoid, 6e-7},
      {OpKind::SigmoidBackward, 1e-6},
      {OpKind::Elu, 1e-6},
      {OpKind::EluBackward, 1e-6},
      {OpKind::GELU, 1e-6},
      {OpKind::GELUBackward, 2e-6},
      {OpKind::Mish, 2e-6},
      {OpKind::MishBackward, 4e-6},
      {OpKind::Swish, 1e-6},
      {OpKind::SoftPlus, 1e-6},
      {OpKind::SoftPlusBackward, 1e-6},
      {OpKind::HardSwishBackward, 4e-7},
      {OpKind::Interpolate, 1e-6},
      {OpKind::InterpolateBackward, 2e-6},
      {OpKind::AvgPool, 1e-6},
      {OpKind::AvgPoolBackward, 1e-6},
      {OpKind::MaxPoolBackward, 1e-6},
  };
  return table;
}

// Sums of column gradients run over all rows.
constexpr double kColumnSums = 5e-6;

bool copies_values(OpKind kind) {
  static const std::set<OpKind> kinds = {
      OpKind::StaticReshape, OpKind::StaticTranspose, OpKind::Reorder, OpKind::Concat,  OpKind::Select,    OpKind::ReLU,
      OpKind::Abs,           OpKind::Maximum,         OpKind::Minimum, OpKind::MaxPool, OpKind::ReduceMax, OpKind::ReduceMin,
      OpKind::Clamp,         OpKind::GenIndex,        OpKind::End,     OpKind::TypeCast};
  return kinds.contains(kind);
}

// How many products an element of the output sums.
double contraction_length(const Graph& graph, const Op& op) {
  const auto count = [&](size_t input) {
    return input < op.inputs.size() && op.inputs[input] != kNoValue
               ? static_cast<double>(graph.tensor(op.inputs[input]).element_count())
               : 1.0;
  };
  if (op.kind == OpKind::MatMul) {
    const Dims& src = *graph.tensor(op.inputs[0]).shape;
    const bool transposed = op.attribute<bool>("transpose_a") && src.size() > 1;
    return src.empty() ? 1 : static_cast<double>(src[src.size() - (transposed ? 2 : 1)]);
  }
  // Convolutions: never more than the smaller of both operands holds.
  return std::max(1.0, std::min(count(0), count(1)));
}

// Accumulated rounding grows with the square root of the length for data of both signs.
double library_error(const Graph& graph, const Op& op) {
  const double strict = 1e-6 + 6e-7 * std::sqrt(contraction_length(graph, op));
  return graph.fpmath_mode == FpMathMode::strict ? strict : strict + 0x1p-8;
}

bool is_matrix_product(OpKind kind) {
  return kind == OpKind::MatMul || kind == OpKind::Convolution || kind == OpKind::ConvTranspose ||
         kind == OpKind::ConvolutionBackwardData || kind == OpKind::ConvolutionBackwardWeights ||
         kind == OpKind::ConvTransposeBackwardData || kind == OpKind::ConvTransposeBackwardWeights;
}

double op_error(const Graph& graph, const Op& op) {
  if (is_matrix_product(op.kind)) return library_error(graph, op);
  if (copies_values(op.kind)) return 0;
  const auto found = op_errors().find(op.kind);
  if (found != op_errors().end()) return found->second;
  return schema_of(op.kind).op_class == OpClass::inner_reduction ? kReduction : kOneRounding;
}

// Half a unit in the last place of a dtype, relative to the value.
double half_ulp(DataType type) {
  switch (type) {
    case DataType::f64: return 0x1p-53;
    case DataType::f32: return 0x1p-24;
    case DataType::f16: return 0x1p-11;
    case DataType::bf16: return 0x1p-8;
    case DataType::f8_e4m3: return 0x1p-4;
    case DataType::f8_e5m2: return 0x1p-3;
    default: return 0;
  }
}

double smallest_step(DataType type) {
  switch (type) {
    case DataType::f32:
    case DataType::bf16: return 0x1p-126;  // subnormals may be flushed
    case DataType::f16: return 0x1p-25;
    case DataType::f8_e4m3: return 0x1p-10;
    case DataType::f8_e5m2: return 0x1p-17;
    default: return 0;
  }
}

bool jumps(OpKind kind) {
  static const std::set<OpKind> kinds = {OpKind::Round,
                                         OpKind::Quantize,
                                         OpKind::DynamicQuantize,
                                         OpKind::GreaterEqual,
                                         OpKind::Divide,
                                         OpKind::Reciprocal,
                                         OpKind::Log,
                                         OpKind::Sqrt,
                                         OpKind::SqrtBackward,
                                         OpKind::Pow,
                                         OpKind::ReLUBackward,
                                         OpKind::ClampBackward,
                                         OpKind::AbsBackward,
                                         OpKind::MaxPoolBackward,
                                         OpKind::HardSigmoidBackward,
                                         OpKind::HardSwishBackward,
                                         OpKind::PReLUBackward,
                                         OpKind::EluBackward};
  return kinds.contains(kind);
}

bool reads_computed(const Graph& graph, const Op& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](ValueIndex input) { return input != kNoValue && graph.value(input).producer.op >= 0; });
}

// Ops that the output depends on.
std::vector<bool> ops_above(const Graph& graph, ValueIndex output) {
  std::vector<bool> above(graph.ops().size(), false);
  const int last = graph.value(output).producer.op;
  if (last < 0) return above;
  above[static_cast<size_t>(last)] = true;
  for (size_t i = static_cast<size_t>(last) + 1; i-- > 0;) {
    if (!above[i]) continue;
    for (const ValueIndex input : graph.ops()[i].inputs)
      if (input != kNoValue && graph.value(input).producer.op >= 0)
        above[static_cast<size_t>(graph.value(input).producer.op)] = true;
  }
  return above;
}

// The name of the port that makes a value.
std::string_view made_by_port(const Graph& graph, ValueIndex output) {
  const Port& made = graph.value(output).producer;
  if (made.op < 0) return "";
  const Op& op = graph.ops()[static_cast<size_t>(made.op)];
  const auto ports = existing_outputs(schema_of(op.kind), op.attributes);
  return static_cast<size_t>(made.port) < ports.size() ? ports[static_cast<size_t>(made.port)]->name : std::string_view{};
}

// A gradient of gamma or beta, by whatever name.
bool is_column_sum(const Graph& graph, ValueIndex output) {
  const std::string_view port = made_by_port(graph, output);
  return port.find("gamma") != std::string_view::npos || port.find("beta") != std::string_view::npos;
}

// What the output is a mean of; kNoValue when it is none.
ValueIndex averaged_value(const Graph& graph, ValueIndex output) {
  const Port& made = graph.value(output).producer;
  if (made.op < 0) return kNoValue;
  const Op& op = graph.ops()[static_cast<size_t>(made.op)];
  if (op.kind == OpKind::ReduceMean || op.kind == OpKind::ReduceSum) return op.inputs.front();
  const std::string_view name = made_by_port(graph, output);
  return name == "mean" || name == "batch_mean" || name == "running_mean" ? op.inputs.front() : kNoValue;
}

}  // namespace

Tolerance tolerance_of(const Graph& subgraph, ValueIndex output) {
  const DataType dtype = subgraph.tensor(output).dtype;
  Tolerance tolerance{0, half_ulp(dtype), smallest_step(dtype), false, averaged_value(subgraph, output)};
  const std::vector<bool> above = ops_above(subgraph, output);
  for (size_t i = 0; i < above.size(); ++i) {
    if (!above[i]) continue;
    const Op& op = subgraph.ops()[i];
    tolerance.computed += op_error(subgraph, op);
    if (jumps(op.kind) && reads_computed(subgraph, op)) tolerance.may_jump = true;
    // The reference keeps inner values unrounded; a backend may store them.
    for (const ValueIndex inner : op.outputs)
      if (inner != kNoValue && inner != output && !subgraph.value(inner).consumers.empty())
        tolerance.computed += subgraph.tensor(inner).dtype == DataType::f32 ? 0 : half_ulp(subgraph.tensor(inner).dtype);
  }
  if (is_column_sum(subgraph, output)) tolerance.computed += kColumnSums;
  if (dtype == DataType::f64) tolerance.computed *= 0x1p-29;  // all arithmetic is f64 then
  return tolerance;
}

}  // namespace lamina::driver
