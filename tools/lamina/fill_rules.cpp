#include "lamina/fill_rules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "interface/op_schema.h"

namespace lamina::driver {
namespace {

using Kind = FillRule::Kind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMaxHops = 16;  // how far ops that only move values are followed

FillRule suits(double low, double high) { return {.low = low, .high = high, .insistence = 1}; }
FillRule needs(double low, double high) { return {.low = low, .high = high, .insistence = 2}; }
FillRule needs(Kind kind, double low, double high) { return {.kind = kind, .low = low, .high = high, .insistence = 2}; }
FillRule always(double value) { return {.kind = Kind::constant, .low = value, .insistence = 2}; }

struct Reader {
  const Graph& graph;
  const Op& op;
  size_t port;
  const LogicalTensor& tensor;

  const LogicalTensor* given(size_t other) const {
    return other < op.inputs.size() && op.inputs[other] != kNoValue ? &graph.tensor(op.inputs[other]) : nullptr;
  }
  ValueIndex made(size_t output = 0) const { return output < op.outputs.size() ? op.outputs[output] : kNoValue; }
  bool flag(const char* name) const { return op.has_attribute(name) && op.attribute<bool>(name); }
  double number(const char* name) const {
    const auto found = op.attributes.find(name);
    const float* value = found == op.attributes.end() ? nullptr : std::get_if<float>(&found->second);
    return value == nullptr ? 0 : static_cast<double>(*value);
  }
  std::string text(const char* name) const { return op.has_attribute(name) ? op.attribute<std::string>(name) : ""; }
  bool is_scalar() const { return tensor.has_full_shape() && tensor.element_count() == 1; }
};

// ---- statistics that belong to a tensor

int first_normalized_axis(const Reader& reader, int rank) {
  if (reader.op.kind == OpKind::LayerNormGrad) {
    const LogicalTensor* gamma = reader.graph.input(reader.op, "gamma");
    return gamma == nullptr ? rank - 1 : rank - gamma->rank();
  }
  return wrap_axis(reader.op.attribute<int64_t>("begin_norm_axis"), rank);
}

const char* data_port(OpKind kind) {
  if (kind == OpKind::LayerNormBackprop) return "input_forward";
  return kind == OpKind::LayerNormGrad ? "x" : "src";
}

// Statistics of a tensor that some op makes are not known here: plausible ones then.
FillRule statistic(const Reader& reader, Kind kind) {
  const ValueIndex source = reader.graph.input_value(reader.op, data_port(reader.op.kind));
  const bool normalized = reader.text("src_kind") == "normalized";
  if (normalized || reader.graph.value(source).producer.op >= 0 || !reader.graph.tensor(source).has_full_shape())
    return kind == Kind::mean ? needs(-0.1, 0.1) : needs(0.5, 2);
  const int rank = reader.graph.tensor(source).rank();
  FillRule rule{.kind = kind, .low = reader.number("epsilon"), .insistence = 3, .source = source};
  const LoopNest nest = schema_of(reader.op.kind).nest;
  rule.per_channel = nest == LoopNest::channel_rows;
  if (nest == LoopNest::group_rows) rule.groups = reader.op.attribute<int64_t>("groups");
  const bool channels_last = reader.text("data_format") != "NCX";
  const bool by_channels = rule.per_channel || rule.groups > 0;
  rule.axis = by_channels ? (channels_last ? rank - 1 : 1) : first_normalized_axis(reader, rank);
  return rule;
}

FillRule given_mean(const Reader& reader) { return statistic(reader, Kind::mean); }

FillRule given_variance(const Reader& reader) {
  const std::string held = reader.text("stats_kind");
  if (held == "rstd") return statistic(reader, Kind::rstd);
  if (held == "std") return statistic(reader, Kind::deviation);
  return statistic(reader, Kind::variance);
}

// ---- quantisation

std::pair<double, double> integer_range(DataType type) {
  switch (type) {
    case DataType::s8: return {-128, 127};
    case DataType::u8: return {0, 255};
    case DataType::s4: return {-8, 7};
    case DataType::u4: return {0, 15};
    case DataType::boolean: return {0, 1};
    case DataType::s64: return {0, 1000};
    default: return {-100, 100};
  }
}

// Twenty percent further than what can be represented, so that saturation is reached.
FillRule quantize_src(const Reader& reader) {
  const auto& scales = reader.op.attribute<std::vector<float>>("scales");
  const double scale = std::abs(static_cast<double>(*std::max_element(scales.begin(), scales.end())));
  const DataType type = reader.graph.tensor(reader.made()).dtype;
  if (is_floating(type)) return suits(-8 * scale, 8 * scale);
  const auto [low, high] = integer_range(type);
  double zero_point = 0;
  if (reader.op.has_attribute("zps") && !reader.op.attribute<std::vector<int64_t>>("zps").empty())
    zero_point = static_cast<double>(reader.op.attribute<std::vector<int64_t>>("zps").front());
  const double margin = 0.1 * (high - low);
  return suits(scale * (low - zero_point - margin), scale * (high - zero_point + margin));
}

FillRule zero_points(const Reader& reader) {
  switch (reader.tensor.dtype) {
    case DataType::u8: return needs(100, 150);
    case DataType::u4: return needs(4, 11);
    case DataType::s4: return needs(-3, 3);
    default: return needs(-8, 8);
  }
}

// ---- attention

bool reaches_softmax(const Graph& graph, ValueIndex value, int hops) {
  if (value == kNoValue || hops == 0) return false;
  for (const Port& consumer : graph.value(value).consumers) {
    const Op& op = graph.ops()[static_cast<size_t>(consumer.op)];
    if (op.kind == OpKind::SoftMax || op.kind == OpKind::Exp) return true;
    const bool follows = op.kind == OpKind::Add || op.kind == OpKind::Subtract || op.kind == OpKind::Select ||
                         op.kind == OpKind::StaticReshape || op.kind == OpKind::TypeCast || op.kind == OpKind::Multiply;
    if (follows && reaches_softmax(graph, op.outputs.front(), hops - 1)) return true;
  }
  return false;
}

bool is_made_by(const Graph& graph, ValueIndex value, OpKind kind) {
  for (int hop = 0; hop < kMaxHops && value != kNoValue; ++hop) {
    const int producer = graph.value(value).producer.op;
    if (producer < 0) return false;
    const Op& op = graph.ops()[static_cast<size_t>(producer)];
    if (op.kind == kind) return true;
    if (op.inputs.empty()) return false;
    value = op.inputs.front();
  }
  return false;
}

ValueIndex other_input(const Reader& reader) { return reader.op.inputs[reader.port == 0 ? 1 : 0]; }

// Row index + length of the keys - length of the queries: what aligns a causal mask with the bottom right corner.
std::optional<FillRule> sequence_length(const Reader& reader) {
  const bool integer = reader.tensor.dtype == DataType::s32 || reader.tensor.dtype == DataType::s64;
  if (!integer || !reader.is_scalar() || reader.op.inputs.size() != 2) return std::nullopt;
  const LogicalTensor& index = reader.graph.tensor(other_input(reader));
  if (!is_made_by(reader.graph, other_input(reader), OpKind::GenIndex) || index.rank() < 2 || !index.has_full_shape())
    return std::nullopt;
  const size_t rank = index.shape->size();
  return always(static_cast<double>((*index.shape)[reader.op.kind == OpKind::Add ? rank - 1 : rank - 2]));
}

// The mask added to scores: it is made by nobody, the scores are.
bool is_additive_mask(const Reader& reader) {
  const ValueIndex scores = other_input(reader);
  return is_floating(reader.tensor.dtype) && reader.tensor.rank() >= 2 && reader.graph.value(scores).producer.op >= 0 &&
         reaches_softmax(reader.graph, reader.made(), 3) && is_made_by(reader.graph, scores, OpKind::MatMul);
}

// Scores minus their log-sum-exp, then exp: the logarithm of the row length is close enough for scores around zero.
std::optional<FillRule> softmax_statistics(const Reader& reader) {
  if (reader.port != 1 || !is_floating(reader.tensor.dtype)) return std::nullopt;
  const LogicalTensor& scores = reader.graph.tensor(reader.op.inputs[0]);
  const bool per_row = scores.rank() > 0 && scores.rank() == reader.tensor.rank() && reader.tensor.shape->back() == 1;
  if (!per_row || !scores.has_full_shape() || !reaches_softmax(reader.graph, reader.made(), 1)) return std::nullopt;
  const double row = std::log(static_cast<double>(std::max<int64_t>(scores.shape->back(), 1)));
  return needs(row, row + 0.25);
}

// ---- readers

FillRule add_operand(const Reader& reader) {
  if (const auto length = sequence_length(reader)) return *length;
  if (is_additive_mask(reader)) return needs(Kind::causal_mask, 0, 0);
  return suits(-2, 2);
}
FillRule subtract_operand(const Reader& reader) {
  if (const auto length = sequence_length(reader)) return *length;
  if (const auto statistics = softmax_statistics(reader)) return *statistics;
  return suits(-2, 2);
}
FillRule multiply_operand(const Reader& reader) { return reader.is_scalar() ? suits(0.125, 0.25) : suits(-2, 2); }
FillRule divisor(const Reader& reader) { return reader.is_scalar() ? needs(4, 8) : needs(Kind::off_zero, 0.5, 2); }
// f16 ends at 65504: weights of a layer shrink with the root of the sum's length, so that what follows stays in range.
FillRule matmul_weights(const Reader& reader) {
  const Dims& shape = *reader.tensor.shape;
  if (reader.tensor.dtype != DataType::f16 || shape.size() != 2) return {};
  const int64_t length = shape[reader.flag("transpose_b") ? 1 : 0];
  const double bound = std::sqrt(3 / static_cast<double>(std::max<int64_t>(length, 3)));
  return suits(-bound, bound);
}
FillRule select_operand(const Reader& reader) {
  if (reader.is_scalar() && reaches_softmax(reader.graph, reader.made(), 3)) return always(-kInfinity);
  return suits(-2, 2);
}
FillRule softmax_result(const Reader& reader, Kind kind) {
  const int rank = reader.tensor.rank();
  return {.kind = kind, .insistence = 3, .axis = wrap_axis(reader.op.attribute<int64_t>("axis"), std::max(rank, 1))};
}
FillRule forward_result(const Reader& reader, const FillRule& of_dst, const FillRule& of_src) {
  return reader.flag("use_dst") ? of_dst : of_src;
}

using Rule = std::function<FillRule(const Reader&)>;
using Use = std::pair<OpKind, std::string>;  // an op and the name of its port; "" any port

Rule fixed(FillRule rule) {
  return [rule](const Reader&) { return rule; };
}

bool has_port(const std::vector<PortSpec>& ports, std::string_view name) {
  return std::any_of(ports.begin(), ports.end(), [&](const PortSpec& port) { return port.name == name; });
}

bool is_norm(const OpSchema& schema) { return has_port(schema.inputs, "gamma"); }

// A mean that is not 0, so that the order of subtracting and scaling shows. Statistics belong to the data, but those of a batch
// norm's forward ops are of batches long gone.
void add_norm_wishes(OpKind kind, std::map<Use, Rule>& rules) {
  const bool of_other_batches = kind == OpKind::BatchNormInference || kind == OpKind::BatchNormForwardTraining;
  rules[{kind, "gamma"}] = fixed(suits(0.5, 1.5));
  rules[{kind, "beta"}] = fixed(suits(-0.5, 0.5));
  rules[{kind, "mean"}] = of_other_batches ? fixed(suits(-0.5, 0.5)) : given_mean;
  rules[{kind, "variance"}] = of_other_batches ? fixed(needs(0.5, 2)) : given_variance;
  rules[{kind, data_port(kind)}] = fixed(suits(-1, 3));
}

// Every wish that an op has, in one place. Ports that are not named take anything.
const std::map<Use, Rule>& wishes() {
  static const std::map<Use, Rule> table = [] {
    std::map<Use, Rule> rules = {
        {{OpKind::Log, "src"}, fixed(needs(0.25, 4))},
        {{OpKind::Sqrt, "src"}, fixed(needs(0.25, 4))},
        {{OpKind::Pow, "src"}, fixed(needs(0.25, 2))},
        {{OpKind::Reciprocal, "src"}, fixed(needs(Kind::off_zero, 0.25, 4))},
        {{OpKind::Divide, "src_1"}, divisor},
        {{OpKind::Divide, "src_0"}, fixed(suits(-2, 2))},
        {{OpKind::Add, ""}, add_operand},
        {{OpKind::Subtract, ""}, subtract_operand},
        {{OpKind::Multiply, ""}, multiply_operand},
        {{OpKind::MatMul, "weights"}, matmul_weights},
        {{OpKind::Maximum, ""}, fixed(suits(-2, 2))},
        {{OpKind::Minimum, ""}, fixed(suits(-2, 2))},
        {{OpKind::Select, ""}, select_operand},
        {{OpKind::Select, "cond"}, fixed(needs(0, 1))},
        {{OpKind::ReduceProd, "src"}, fixed(suits(0.9, 1.1))},
        {{OpKind::SqrtBackward, "src/dst"}, fixed(needs(0.25, 4))},
        {{OpKind::SoftMaxBackward, "dst"}, [](const Reader& r) { return softmax_result(r, Kind::softmax); }},
        {{OpKind::LogSoftmaxBackward, "dst"}, [](const Reader& r) { return softmax_result(r, Kind::log_softmax); }},
        {{OpKind::Quantize, "src"}, quantize_src},
        {{OpKind::DynamicQuantize, "src"}, fixed(suits(-2, 2))},
        {{OpKind::DynamicQuantize, "scales"}, fixed(needs(0.01, 0.02))},
        {{OpKind::DynamicQuantize, "zps"}, zero_points},
        {{OpKind::DynamicDequantize, "scales"}, fixed(needs(0.01, 0.02))},
        {{OpKind::DynamicDequantize, "zps"}, zero_points},
        {{OpKind::Dropout, "probability"}, fixed(always(0.25))},
        {{OpKind::Dropout, "seed"}, fixed(needs(1, 1000))},
        {{OpKind::Dropout, "offset"}, fixed(needs(0, 1000))},
        {{OpKind::PReLU, "slope"}, fixed(suits(0.05, 0.5))},
        {{OpKind::PReLUBackward, "slope"}, fixed(suits(0.05, 0.5))},
    };
    for (const OpKind kind : all_op_kinds())
      if (is_norm(schema_of(kind))) add_norm_wishes(kind, rules);
    for (const OpKind kind : {OpKind::Abs,
                              OpKind::Elu,
                              OpKind::Exp,
                              OpKind::GELU,
                              OpKind::HardSigmoid,
                              OpKind::HardSwish,
                              OpKind::LeakyReLU,
                              OpKind::Mish,
                              OpKind::ReLU,
                              OpKind::Round,
                              OpKind::Sigmoid,
                              OpKind::SoftPlus,
                              OpKind::Swish,
                              OpKind::Tanh,
                              OpKind::SoftMax,
                              OpKind::LogSoftmax,
                              OpKind::GELUBackward,
                              OpKind::HardSigmoidBackward,
                              OpKind::HardSwishBackward,
                              OpKind::MishBackward,
                              OpKind::SoftPlusBackward,
                              OpKind::AbsBackward})
      rules[{kind, "src"}] = fixed(suits(-4, 4));
    rules[{OpKind::Clamp, "src"}] = [](const Reader& r) {
      const double low = std::max(r.number("min"), -1e4);
      const double high = std::min(r.number("max"), 1e4);
      const double margin = 0.5 * (high - low) + 0.5;
      return suits(low - margin, high + margin);
    };
    rules[{OpKind::ClampBackward, "src/dst"}] = [](const Reader& r) {
      const double low = std::max(r.number("min"), -1e4);
      const double high = std::min(r.number("max"), 1e4);
      const double margin = 0.5 * (high - low) + 0.5;
      return forward_result(r, needs(Kind::clamped, low, high), suits(low - margin, high + margin));
    };
    rules[{OpKind::ReLUBackward, "src/dst"}] = [](const Reader& r) {
      return forward_result(r, needs(Kind::rectified, -2, 2), suits(-2, 2));
    };
    rules[{OpKind::SigmoidBackward, "src/dst"}] = [](const Reader& r) {
      return forward_result(r, needs(0.01, 0.99), suits(-4, 4));
    };
    rules[{OpKind::TanhBackward, "src/dst"}] = [](const Reader& r) {
      return forward_result(r, needs(-0.99, 0.99), suits(-4, 4));
    };
    rules[{OpKind::EluBackward, "src/dst"}] = [](const Reader& r) {
      return forward_result(r, needs(std::min(-0.98 * r.number("alpha"), 1.0), 2), suits(-4, 4));
    };
    return rules;
  }();
  return table;
}

bool moves_values(OpKind kind) {
  return kind == OpKind::StaticReshape || kind == OpKind::StaticTranspose || kind == OpKind::Reorder ||
         kind == OpKind::TypeCast || kind == OpKind::Concat || kind == OpKind::End;
}

// What a reader wishes; an op that only moves values wishes what its own readers wish.
FillRule wish_of(const Graph& graph, const LogicalTensor& tensor, const Port& consumer, int hops) {
  const Op& op = graph.ops()[static_cast<size_t>(consumer.op)];
  const auto ports = existing_inputs(schema_of(op.kind), op.attributes);
  const auto port = static_cast<size_t>(consumer.port);
  const std::string name = ports.empty() ? "" : ports[std::min(port, ports.size() - 1)]->name;
  const Reader reader{graph, op, port, tensor};
  for (const Use& use : {Use{op.kind, name}, Use{op.kind, ""}})
    if (const auto found = wishes().find(use); found != wishes().end()) return found->second(reader);
  FillRule best;
  if (!moves_values(op.kind) || hops == 0 || op.outputs.empty()) return best;
  for (const Port& next : graph.value(op.outputs.front()).consumers) {
    FillRule wish = wish_of(graph, tensor, next, hops - 1);
    // Values that must belong to another tensor or to an axis lose that bond on the way.
    if (wish.insistence < 3 && wish.insistence > best.insistence) best = wish;
  }
  return best;
}

}  // namespace

bool needs_source(const FillRule& rule) { return rule.source != kNoValue; }

FillRule fill_rule(const Graph& graph, ValueIndex input) {
  if (const auto known = graph.value(input).constant) return always(*known);
  const Value& value = graph.value(input);
  FillRule best;
  for (const Port& consumer : value.consumers) {
    const FillRule wish = wish_of(graph, value.tensor, consumer, kMaxHops);
    if (wish.insistence > best.insistence) best = wish;
  }
  // An integer tensor without a needed range takes all that its type can hold.
  if (!is_floating(value.tensor.dtype) && best.insistence < 2) {
    const auto [low, high] = integer_range(value.tensor.dtype);
    best = {.low = low, .high = high};
  }
  return best;
}

}  // namespace lamina::driver
