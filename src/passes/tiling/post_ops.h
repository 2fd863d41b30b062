// Elementwise ops after a product or a convolution that a library can apply to each element before it is stored.
//
//   product ── GELU ── Add(Dequantize(other)) ── Quantize ── result        a chain that is one group
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "interface/graph.h"
#include "passes/core/capabilities.h"
#include "passes/fusion/fuse.h"

namespace lamina {

// The second operand of a binary op, as large as the result or broadcast to it: real = scale * (value - zero_point).
struct PostOpOperand {
  ValueIndex value = kNoValue;
  float scale = 1;
  int64_t zero_point = 0;
};

struct PostOp {
  Op op;             // its kind, name and attributes; never a TypeCast, because nothing is rounded in between
  int operand = -1;  // index in PostOps::operands; -1 if the op has only one operand
};

struct PostOps {
  std::vector<PostOp> ops;
  std::vector<PostOpOperand> operands;
  ValueIndex result = kNoValue;
};

// The chain of ops after the only output of `product`, if `group` consists of nothing else and the result has the product's
// shape. `is_kept`: whether a value is read outside. Nothing if the library does not take an op, if an operand is broadcast
// along other axes than all of them or all but the channels' (the columns'), or if a NaN of the bias or an operand would be
// lost, unless the result is of integers, which have no NaN.
std::optional<PostOps> find_post_ops(const Graph& graph, const Op& product, const FusionGroup& group,
                                     const LibraryCapabilities& library, const std::function<bool(ValueIndex)>& is_kept);

}  // namespace lamina
