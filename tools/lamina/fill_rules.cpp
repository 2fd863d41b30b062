#include "lamina/fill_rules.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "interface/op_schema.h"
#include "lamina/attention_rules.h"

namespace lamina::driver {
namespace {

using Kind = FillRule::Kind;

constexpr int kMaxHops = 16;  // the maximum number of ops to follow that only move values

// ---- statistics of a tensor

std::string text_attribute(const Op& op, std::string_view name) {
  return op.has_attribute(name) ? op.attribute<std::string>(name) : "";
}

// An op without begin_norm_axis normalises as many trailing axes as gamma has.
int first_normalized_axis(const Graph& graph, const Op& op, int rank) {
  if (op.has_attribute("begin_norm_axis")) return wrap_axis(op.attribute<int64_t>("begin_norm_axis"), rank);
  const size_t gamma = port_with_role(schema_of(op.kind).inputs, op.attributes, PortRole::gamma);
  return gamma < op.inputs.size() && op.inputs[gamma] != kNoValue ? rank - graph.tensor(op.inputs[gamma]).rank() : rank - 1;
}

Kind held_by_variance(const Op& op) {
  const std::string held = text_attribute(op, "stats_kind");
  return held == "rstd" ? Kind::rstd : held == "std" ? Kind::deviation : Kind::variance;
}

// The statistics of a tensor that an op produces are unknown here, so plausible values are used.
FillRule statistic(const Graph& graph, const Op& op, Kind kind) {
  const OpSchema& schema = schema_of(op.kind);
  const ValueIndex source = op.inputs[port_with_role(schema.inputs, op.attributes, PortRole::normalized)];
  const bool normalized = text_attribute(op, "src_kind") == "normalized";
  if (normalized || graph.value(source).producer.op >= 0 || !graph.tensor(source).has_full_shape())
    return kind == Kind::mean ? FillRule{.low = -0.1, .high = 0.1, .insistence = 2}
                              : FillRule{.low = 0.5, .high = 2, .insistence = 2};
  const int rank = graph.tensor(source).rank();
  const auto epsilon = op.number("epsilon");
  FillRule rule{.kind = kind, .low = epsilon, .insistence = 3, .source = source};
  rule.per_channel = schema.nest == LoopNest::channel_rows;
  if (schema.nest == LoopNest::group_rows) rule.groups = op.attribute<int64_t>("groups");
  const bool by_channels = rule.per_channel || rule.groups > 0;
  rule.axis = by_channels ? (has_channels_last(op) ? rank - 1 : 1) : first_normalized_axis(graph, op, rank);
  return rule;
}

// ---- domains

FillRule rule_of(const Domain& domain, const Reader& reader) {
  FillRule rule{.low = domain.low, .high = domain.high, .insistence = domain.required ? 2 : 1};
  switch (domain.form) {
    case Domain::Form::interval: rule.kind = domain.low == domain.high ? Kind::constant : Kind::uniform; return rule;
    case Domain::Form::off_zero: rule.kind = Kind::off_zero; return rule;
    case Domain::Form::rectified: rule.kind = Kind::rectified; return rule;
    case Domain::Form::clamped: rule.kind = Kind::clamped; return rule;
    case Domain::Form::softmax: rule.kind = Kind::softmax; break;
    case Domain::Form::log_softmax: rule.kind = Kind::log_softmax; break;
  }
  rule.insistence = 3;
  rule.axis = wrap_axis(reader.op.attribute<int64_t>("axis"), std::max(reader.tensor.rank(), 1));
  return rule;
}

// The op's own requirement for the port; nullopt if any values will do.
std::optional<FillRule> own_wish(const Reader& reader, const PortSpec& port) {
  if (const auto rule = attention_rule(reader)) return rule;
  if (const DomainRule* rule = domain_of(port)) {
    const auto domain = rule->domain(OpView(reader.graph, reader.op), reader.tensor);
    return domain ? std::optional(rule_of(*domain, reader)) : std::nullopt;
  }
  if (port.role == PortRole::mean) return statistic(reader.graph, reader.op, Kind::mean);
  if (port.role == PortRole::variance) return statistic(reader.graph, reader.op, held_by_variance(reader.op));
  return std::nullopt;
}

// The requirement of one consumer; for an op that only moves values, that of its own consumers.
FillRule wish_of(const Graph& graph, const LogicalTensor& tensor, const Port& consumer, int hops) {
  const Op& op = graph.op(consumer.op);
  const OpSchema& schema = schema_of(op.kind);
  const auto ports = existing_inputs(schema, op.attributes);
  const auto port = static_cast<size_t>(consumer.port);
  if (!ports.empty())
    if (const auto wish = own_wish({graph, op, port, tensor}, *ports[std::min(port, ports.size() - 1)])) return *wish;
  FillRule best;
  if (!schema.traits.copies || hops == 0 || op.outputs.empty()) return best;
  for (const Port& next : graph.value(op.outputs.front()).consumers) {
    FillRule wish = wish_of(graph, tensor, next, hops - 1);
    // A requirement that refers to another tensor or an axis does not apply to the input of an op that moves values.
    if (wish.insistence < 3 && wish.insistence > best.insistence) best = wish;
  }
  return best;
}

// The range of a type; for wide types, a part of it.
std::pair<double, double> integer_range(DataType type) {
  if (type == DataType::boolean) return {0, 1};
  const bool is_signed = is_signed_integer(type);
  if (const int bits = bits_of(type); bits <= 8) {
    const double half = std::ldexp(1.0, bits - 1);
    return is_signed ? std::pair(-half, half - 1) : std::pair(0.0, 2 * half - 1);
  }
  if (!is_signed || type == DataType::s64) return {0, 1000};  // mostly positions
  return {-100, 100};
}

}  // namespace

bool needs_source(const FillRule& rule) { return rule.source != kNoValue; }

FillRule fill_rule(const Graph& graph, ValueIndex input) {
  const Value& value = graph.value(input);
  if (value.constant) return {.kind = Kind::constant, .low = *value.constant, .insistence = 2};
  FillRule best;
  for (const Port& consumer : value.consumers) {
    const FillRule wish = wish_of(graph, value.tensor, consumer, kMaxHops);
    if (wish.insistence > best.insistence) best = wish;
  }
  // An integer tensor without a required range uses its type's range.
  if (!is_floating(value.tensor.dtype) && best.insistence < 2) {
    const auto [low, high] = integer_range(value.tensor.dtype);
    best = {.low = low, .high = high};
  }
  return best;
}

}  // namespace lamina::driver
