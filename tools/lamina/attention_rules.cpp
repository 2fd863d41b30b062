#include "lamina/attention_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lamina::driver {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMaxHops = 16;  // the maximum number of ops between a value and its traced producer

FillRule always(double value) { return {.kind = FillRule::Kind::constant, .low = value, .insistence = 2}; }

bool reaches_softmax(const Graph& graph, ValueIndex value, int hops) {
  if (value == kNoValue || hops == 0) return false;
  for (const Port& consumer : graph.value(value).consumers) {
    const Op& op = graph.op(consumer.op);
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
    const Op& op = graph.op(producer);
    if (op.kind == kind) return true;
    if (op.inputs.empty()) return false;
    value = op.inputs.front();
  }
  return false;
}

ValueIndex other_input(const Reader& reader) { return reader.op.inputs[reader.port == 0 ? 1 : 0]; }

// The scalar in row index + length of the keys - length of the queries, which aligns a causal mask with the bottom right
// corner.
std::optional<FillRule> sequence_length(const Reader& reader) {
  const bool integer = reader.tensor.dtype == DataType::s32 || reader.tensor.dtype == DataType::s64;
  if (!integer || !reader.is_scalar() || reader.op.inputs.size() != 2) return std::nullopt;
  const LogicalTensor& index = reader.graph.tensor(other_input(reader));
  if (!is_made_by(reader.graph, other_input(reader), OpKind::GenIndex) || index.rank() < 2 || !index.has_full_shape())
    return std::nullopt;
  const size_t rank = index.shape->size();
  return always(static_cast<double>((*index.shape)[reader.op.kind == OpKind::Add ? rank - 1 : rank - 2]));
}

// The mask added to scores: a graph input, added to the result of a MatMul.
bool is_additive_mask(const Reader& reader) {
  const ValueIndex scores = other_input(reader);
  return is_floating(reader.tensor.dtype) && reader.tensor.rank() >= 2 && reader.graph.value(scores).producer.op >= 0 &&
         reaches_softmax(reader.graph, reader.made(), 3) && is_made_by(reader.graph, scores, OpKind::MatMul);
}

// The log-sum-exp that is subtracted from scores before exp: for scores around zero, the logarithm of the row length is close
// enough.
std::optional<FillRule> softmax_statistics(const Reader& reader) {
  if (reader.port != 1 || !is_floating(reader.tensor.dtype)) return std::nullopt;
  const LogicalTensor& scores = reader.graph.tensor(reader.op.inputs[0]);
  const bool per_row = scores.rank() > 0 && scores.rank() == reader.tensor.rank() && reader.tensor.shape->back() == 1;
  if (!per_row || !scores.has_full_shape() || !reaches_softmax(reader.graph, reader.made(), 1)) return std::nullopt;
  const double row = std::log(static_cast<double>(std::max<int64_t>(scores.shape->back(), 1)));
  return FillRule{.low = row, .high = row + 0.25, .insistence = 2};
}

// The value that replaces a masked score.
bool is_hiding_value(const Reader& reader) {
  return reader.port > 0 && reader.is_scalar() && reaches_softmax(reader.graph, reader.made(), 3);
}

}  // namespace

std::optional<FillRule> attention_rule(const Reader& reader) {
  switch (reader.op.kind) {
    case OpKind::Add:
      if (const auto length = sequence_length(reader)) return length;
      if (is_additive_mask(reader)) return FillRule{.kind = FillRule::Kind::causal_mask, .low = 0, .high = 0, .insistence = 2};
      return std::nullopt;
    case OpKind::Subtract:
      if (const auto length = sequence_length(reader)) return length;
      return softmax_statistics(reader);
    case OpKind::Select: return is_hiding_value(reader) ? std::optional(always(-kInfinity)) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace lamina::driver
