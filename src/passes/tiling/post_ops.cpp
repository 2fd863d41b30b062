#include "passes/tiling/post_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "interface/op_schema.h"
#include "interface/shape_rules.h"
#include "passes/tiling/row_view.h"

namespace lamina {

namespace {

int channel_axis_of(const Op& product, int rank) {
  return is_matrix_product(product) || has_channels_last(product) ? rank - 1 : 1;
}

// Whether the operand has one number, one per channel, or one per element. If there are images, also one of these per image.
bool is_broadcast_well(const Dims& operand, const Dims& result, int channels, bool has_images) {
  if (operand.size() > result.size()) return false;
  const size_t added = result.size() - operand.size();
  bool along_channels = true, along_others = true, is_one = true, is_one_elsewhere = true;
  for (size_t axis = has_images ? 1 : 0; axis < result.size(); ++axis) {
    const int64_t extent = axis < added ? 1 : operand[axis - added];
    const bool is_channels = static_cast<int>(axis) == channels;
    (is_channels ? along_channels : along_others) &= extent == result[axis];
    is_one &= extent == 1;
    if (!is_channels) is_one_elsewhere &= extent == 1;
  }
  return is_one || (along_channels && (along_others || is_one_elsewhere));
}

// Libraries multiply by the inverse of a scale. The inverse of a subnormal scale is infinite, and 0 would become NaN.
bool has_inverse(float scale) { return std::isfinite(1 / scale); }

// Whether a cast to `to` changes none of the numbers that the operand's integers represent.
bool is_exact(const PostOpOperand& operand, DataType integers, DataType to) {
  const int64_t lowest = integers == DataType::s8 ? std::numeric_limits<int8_t>::min() : 0;
  for (int64_t integer = lowest; integer < lowest + 256; ++integer) {
    const auto real = static_cast<double>(static_cast<float>(integer - operand.zero_point) * operand.scale);
    if (round_to(to, real) != real) return false;
  }
  return true;
}

class Chain {
 public:
  Chain(const Graph& graph, const Op& product, const FusionGroup& group, const LibraryCapabilities& library,
        const std::function<bool(ValueIndex)>& is_kept)
      : graph_(graph), product_(product), library_(library), members_(group.ops.begin(), group.ops.end()), is_kept_(is_kept) {
    const bool has_bias = product.inputs.size() > 2 && product.inputs[2] != kNoValue;
    may_be_nan_ = has_bias;
  }

  std::optional<PostOps> find() {
    chain_.result = product_.outputs[0];
    for (int next = only_reader(); next >= 0; next = only_reader()) {
      if (!take(graph_.op(next))) return std::nullopt;
      members_.erase(next);
      chain_.result = graph_.op(next).outputs[0];
    }
    const LibraryCapabilities::PostOpLimits limits = library_.post_op_limits();
    if (!members_.empty() || chain_.ops.size() > limits.ops || chain_.operands.size() > limits.operands) return std::nullopt;
    const DataType dtype = graph_.tensor(chain_.result).dtype;
    if (!is_byte_integer(dtype) && (loses_nan_ || (dtype != DataType::f32 && dtype != DataType::bf16))) return std::nullopt;
    return chain_;
  }

 private:
  // The op of the group that is the only reader of the chain's end; -1 if there is none.
  int only_reader() const {
    const auto& readers = graph_.value(chain_.result).consumers;
    if (readers.size() != 1 || !members_.contains(readers[0].op) || is_kept_(chain_.result)) return -1;
    return readers[0].op;
  }

  bool take(const Op& op) {
    if (is_rounded_ || is_byte_integer(graph_.tensor(chain_.result).dtype)) return false;
    if (schema_of(op.kind).traits.converts) {
      const DataType from = graph_.tensor(chain_.result).dtype, to = graph_.tensor(op.outputs[0]).dtype;
      is_rounded_ = bits_of(to) < bits_of(from);
      return is_floating(to);
    }
    const std::optional<LibraryCapabilities::PostOpSupport> support = library_.takes_post_op(product_, op);
    if (!support) return false;
    PostOp post_op{op};
    if (op.inputs.size() == 2) {
      if (!take_operand(op)) return false;
      post_op.operand = static_cast<int>(chain_.operands.size()) - 1;
    } else if (has_constant_scales(op.kind)) {
      const auto& scales = op.attribute<std::vector<float>>("scales");
      if (scales.size() != 1 || !has_inverse(scales[0]) || !is_byte_integer(graph_.tensor(op.outputs[0]).dtype)) return false;
    }
    loses_nan_ = loses_nan_ || (may_be_nan_ && !support->keeps_nan);
    chain_.ops.push_back(std::move(post_op));
    return true;
  }

  bool take_operand(const Op& op) {
    const bool is_second = op.inputs[0] == chain_.result;
    if (!is_second && !schema_of(op.kind).traits.commutative) return false;
    PostOpOperand operand{op.inputs[is_second ? 1 : 0]};
    const auto maker = graph_.value(operand.value).producer.op;
    if (maker >= 0 && members_.contains(maker) && !take_dequantized(operand, op)) return false;
    const LogicalTensor& tensor = graph_.tensor(operand.value);
    const LogicalTensor &before = graph_.tensor(chain_.result), &after = graph_.tensor(op.outputs[0]);
    if (!tensor.has_full_shape() || before.shape != after.shape) return false;
    const int channels = channel_axis_of(product_, after.rank());
    if (schema_of(op.kind).nest == LoopNest::per_channel) {
      if (channel_axis_of(op, after.rank()) != channels || *tensor.shape != Dims{(*after.shape)[static_cast<size_t>(channels)]})
        return false;
    } else if (!is_broadcast_well(*tensor.shape, *after.shape, channels, !is_matrix_product(product_))) {
      return false;
    }
    const bool is_float = tensor.dtype == DataType::f32 || tensor.dtype == DataType::bf16;
    if (!is_float && !is_byte_integer(tensor.dtype)) return false;
    may_be_nan_ = may_be_nan_ || is_float || op.kind == OpKind::Divide;
    chain_.operands.push_back(operand);
    return true;
  }

  // For an operand that the group dequantises, uses its integers if the op can apply the scale and the zero point.
  // A library does not round them, so a cast behind the Dequantize must have nothing to round.
  bool take_dequantized(PostOpOperand& operand, const Op& reader) {
    std::vector<int> taken;
    const DataType read_as = graph_.tensor(operand.value).dtype;
    for (;;) {
      const Value& value = graph_.value(operand.value);
      if (value.consumers.size() != 1 || is_kept_(operand.value)) return false;
      const int position = value.producer.op;
      if (position < 0 || !members_.contains(position)) return false;
      const Op& maker = graph_.op(position);
      taken.push_back(position);
      operand.value = maker.inputs[0];
      if (schema_of(maker.kind).traits.converts && taken.size() == 1) continue;
      if (!has_constant_scales(maker.kind) || maker.attribute<std::vector<float>>("scales").size() != 1) return false;
      operand.scale = maker.attribute<std::vector<float>>("scales")[0];
      if (!has_inverse(operand.scale)) return false;
      if (maker.has_attribute("zps") && !maker.attribute<std::vector<int64_t>>("zps").empty())
        operand.zero_point = maker.attribute<std::vector<int64_t>>("zps")[0];
      break;
    }
    for (const int position : taken) members_.erase(position);
    const DataType dtype = graph_.tensor(operand.value).dtype;
    if (!is_byte_integer(dtype) || !is_exact(operand, dtype, read_as)) return false;
    return reader.kind == OpKind::Add || (reader.kind == OpKind::Multiply && operand.zero_point == 0);
  }

  const Graph& graph_;
  const Op& product_;
  const LibraryCapabilities& library_;
  std::set<int> members_;  // of the group, not yet part of the chain
  const std::function<bool(ValueIndex)>& is_kept_;
  PostOps chain_;
  bool may_be_nan_ = false, loses_nan_ = false;
  bool is_rounded_ = false;  // by a cast to a narrower type; a library would pass on the unrounded value
};

}  // namespace

std::optional<PostOps> find_post_ops(const Graph& graph, const Op& product, const FusionGroup& group,
                                     const LibraryCapabilities& library, const std::function<bool(ValueIndex)>& is_kept) {
  // Libraries do not compute sums of zero terms.
  const auto is_empty = [&](ValueIndex value) { return value != kNoValue && graph.tensor(value).element_count() == 0; };
  if (std::any_of(product.inputs.begin(), product.inputs.end(), is_empty)) return std::nullopt;
  return Chain(graph, product, group, library, is_kept).find();
}

}  // namespace lamina
