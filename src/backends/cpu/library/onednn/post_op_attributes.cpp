#include "backends/cpu/library/onednn/post_op_attributes.h"

#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::cpu::onednn {

namespace {

using algorithm = dnnl::algorithm;

algorithm binary_of(OpKind kind) {
  switch (kind) {
    case OpKind::Add:
    case OpKind::BiasAdd: return algorithm::binary_add;
    case OpKind::Divide: return algorithm::binary_div;
    case OpKind::Maximum: return algorithm::binary_max;
    case OpKind::Minimum: return algorithm::binary_min;
    case OpKind::Multiply: return algorithm::binary_mul;
    case OpKind::Subtract: return algorithm::binary_sub;
    default: fail_check("an op of two operands", __FILE__, __LINE__, std::string(name_of(kind)));
  }
}

dnnl::memory::desc single(dnnl::memory::data_type type) { return {{1}, type, dnnl::memory::dims{1}}; }

}  // namespace

PostOpAttributes::PostOpAttributes(const kernel::LibraryStep& step) {
  if (!step.post_ops) return;
  for (const PostOp& post_op : step.post_ops->ops) {
    text_ += join(text_.empty() ? ", then " : ", ", name_of(post_op.op.kind));
    const int number = post_op.operand;
    add(post_op.op, number < 0 ? nullptr : &step.post_ops->operands[static_cast<size_t>(number)], number);
  }
}

void PostOpAttributes::add(const Op& op, const PostOpOperand* operand, int number) {
  const auto eltwise = [&](algorithm kind, float alpha = 0, float beta = 0) { operations_.push_back({kind, alpha, beta}); };
  const auto f32_of = [&](std::string_view name) { return static_cast<float>(op.number(name)); };
  switch (op.kind) {
    case OpKind::Abs: return eltwise(algorithm::eltwise_abs);
    case OpKind::Clamp: return eltwise(algorithm::eltwise_clip, f32_of("min"), f32_of("max"));
    case OpKind::Elu: return eltwise(algorithm::eltwise_elu, f32_of("alpha"));
    case OpKind::GELU:
      return eltwise(op.attribute<std::string>("mode") == "gelu_erf" ? algorithm::eltwise_gelu_erf
                                                                     : algorithm::eltwise_gelu_tanh);
    case OpKind::HardSigmoid: return eltwise(algorithm::eltwise_hardsigmoid, f32_of("alpha"), f32_of("beta"));
    case OpKind::HardSwish: return eltwise(algorithm::eltwise_hardswish, 1.0f / 6, 0.5f);
    case OpKind::LeakyReLU: return eltwise(algorithm::eltwise_relu, f32_of("alpha"));
    case OpKind::Mish: return eltwise(algorithm::eltwise_mish);
    case OpKind::ReLU: return eltwise(algorithm::eltwise_relu);
    case OpKind::Sigmoid: return eltwise(algorithm::eltwise_logistic);
    case OpKind::Square: return eltwise(algorithm::eltwise_square);
    case OpKind::Swish: return eltwise(algorithm::eltwise_swish, f32_of("alpha"));
    case OpKind::Tanh: return eltwise(algorithm::eltwise_tanh);
    case OpKind::Quantize:
      is_quantized_ = true;
      scale_ = op.attribute<std::vector<float>>("scales")[0];
      if (op.has_attribute("zps") && !op.attribute<std::vector<int64_t>>("zps").empty())
        zero_point_ = static_cast<int32_t>(op.attribute<std::vector<int64_t>>("zps")[0]);
      return;
    default: return add_binary(op, *operand, number);
  }
}

// x + s * (q - z) is s * (x / s - z + q), and x * (s * q) is s * (x * q).
void PostOpAttributes::add_binary(const Op& op, const PostOpOperand& operand, int number) {
  const bool is_moved = operand.scale != 1 || operand.zero_point != 0;
  if (op.kind == OpKind::Add && is_moved)
    operations_.push_back({algorithm::eltwise_linear, 1 / operand.scale, -static_cast<float>(operand.zero_point)});
  operations_.push_back({binary_of(op.kind), 0, 0, number});
  if (operand.scale != 1) operations_.push_back({algorithm::eltwise_linear, operand.scale, 0});
}

void PostOpAttributes::add_to(dnnl::primitive_attr& attr, const std::vector<dnnl::memory::desc>& operands) const {
  dnnl::post_ops after = attr.get_post_ops();
  for (const Operation& operation : operations_) {
    if (operation.operand < 0)
      after.append_eltwise(operation.algorithm, operation.alpha, operation.beta);
    else
      after.append_binary(operation.algorithm, operands[static_cast<size_t>(operation.operand)]);
  }
  if (after.len() > 0) attr.set_post_ops(after);
  if (!is_quantized_) return;
  if (scale_ != 1) attr.set_scales_mask(DNNL_ARG_DST, 0);
  if (zero_point_ != 0) attr.set_zero_points_mask(DNNL_ARG_DST, 0);
}

void PostOpAttributes::add_to(PrimitiveCall::Arguments& arguments, const std::vector<dnnl::memory::desc>& operands,
                              int first) const {
  for (size_t i = 0; i < operations_.size(); ++i) {
    const int operand = operations_[i].operand;
    if (operand < 0) continue;
    arguments.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(first + static_cast<int>(i)) | DNNL_ARG_SRC_1,
                           operands[static_cast<size_t>(operand)]);
  }
  if (!is_quantized_) return;
  if (scale_ != 1) arguments.emplace_back(DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, single(dnnl::memory::data_type::f32));
  if (zero_point_ != 0) arguments.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, single(dnnl::memory::data_type::s32));
}

void PostOpAttributes::add_to(void** pointers, size_t& count) const {
  if (!is_quantized_) return;
  if (scale_ != 1) pointers[count++] = const_cast<float*>(&scale_);
  if (zero_point_ != 0) pointers[count++] = const_cast<int32_t*>(&zero_point_);
}

}  // namespace lamina::cpu::onednn
