// Elementwise ops behind a product or a convolution that a library may do to each element before it is stored.
//
//   product ── GELU ── Add(Dequantize(other)) ── Quantize ── result        a chain, a group of its own
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"

namespace lamina {

// The second operand of a binary op, as large as the result or broadcast to it: real = scale * (value - zero_point).
struct FollowingOperand {
  ValueIndex value = kNoValue;
  float scale = 1;
  int64_t zero_point = 0;
};

struct FollowingOp {
  Op op;             // its kind, name and attributes; never a TypeCast: nothing is rounded in between
  int operand = -1;  // in FollowingOps::operands; -1: it has one operand
};

struct FollowingOps {
  std::vector<FollowingOp> ops;
  std::vector<FollowingOperand> operands;
  ValueIndex result = kNoValue;
};

// What stands behind the only output of `product`, where `group` is nothing else and the result has the product's shape.
// `is_kept`: whether somebody outside reads a value. Nothing where an op is of another kind, an operand is broadcast along
// other axes than all of them or all but the channels' (the columns'), or a NaN of the bias or an operand would be lost, which
// a result of integers does not have anyway.
std::optional<FollowingOps> following_ops(const Graph& graph, const Op& product, const FusionGroup& group,
                                          const std::function<bool(ValueIndex)>& is_kept);

}  // namespace lamina
