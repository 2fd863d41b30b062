#include "backends/cpu/library/onednn/post_op_attributes.h"

#include <algorithm>
#include <iterator>

#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::cpu::onednn {

namespace {

using algorithm = dnnl::algorithm;

// An op that oneDNN applies. `alpha` and `beta` are the names of attributes.
struct Supported {
  OpKind kind;
  algorithm form;
  bool keeps_nan = false;
  const char *alpha = nullptr, *beta = nullptr;
};

constexpr Supported kSupported[] = {
    {OpKind::Abs, algorithm::eltwise_abs},
    {OpKind::Clamp, algorithm::eltwise_clip, false, "min", "max"},
    {OpKind::Elu, algorithm::eltwise_elu, false, "alpha"},
    {OpKind::GELU, algorithm::eltwise_gelu_erf},
    {OpKind::HardSigmoid, algorithm::eltwise_hardsigmoid, false, "alpha", "beta"},
    {OpKind::HardSwish, algorithm::eltwise_hardswish},
    {OpKind::LeakyReLU, algorithm::eltwise_relu, false, "alpha"},
    {OpKind::Mish, algorithm::eltwise_mish},
    {OpKind::ReLU, algorithm::eltwise_relu},
    {OpKind::Round, algorithm::eltwise_round, true},
    {OpKind::Sigmoid, algorithm::eltwise_logistic},
    {OpKind::Square, algorithm::eltwise_square, true},
    {OpKind::Swish, algorithm::eltwise_swish, false, "alpha"},
    {OpKind::Tanh, algorithm::eltwise_tanh},
    {OpKind::Add, algorithm::binary_add, true},
    {OpKind::BiasAdd, algorithm::binary_add, true},
    {OpKind::Divide, algorithm::binary_div, true},
    {OpKind::Maximum, algorithm::binary_max},
    {OpKind::Minimum, algorithm::binary_min},
    {OpKind::Multiply, algorithm::binary_mul, true},
    {OpKind::Subtract, algorithm::binary_sub, true},
    {OpKind::Quantize, algorithm::undef},  // by the scale and the zero point of the result
};

const Supported* find(OpKind kind) {
  const auto* const found =
      std::find_if(std::begin(kSupported), std::end(kSupported), [kind](const Supported& op) { return op.kind == kind; });
  return found == std::end(kSupported) ? nullptr : found;
}

dnnl::memory::desc single(dnnl::memory::data_type type) { return {{1}, type, dnnl::memory::dims{1}}; }

}  // namespace

std::optional<LibraryCapabilities::PostOpSupport> post_op_support(const Op& op) {
  const Supported* const supported = find(op.kind);
  if (supported == nullptr) return std::nullopt;
  return LibraryCapabilities::PostOpSupport{.keeps_nan = supported->keeps_nan};
}

PostOpAttributes::PostOpAttributes(const kernel::LibraryStep& step) {
  if (!step.post_ops) return;
  for (const PostOp& post_op : step.post_ops->ops) {
    text_ += join(text_.empty() ? ", then " : ", ", name_of(post_op.op.kind));
    const int number = post_op.operand;
    add(post_op.op, number < 0 ? nullptr : &step.post_ops->operands[static_cast<size_t>(number)], number);
  }
}

void PostOpAttributes::add(const Op& op, const PostOpOperand* operand, int number) {
  const Supported* const supported = find(op.kind);
  LAMINA_CHECK(supported != nullptr, std::string(name_of(op.kind)));
  if (operand != nullptr) return add_binary(op, *operand, number);
  const auto attribute = [&](const char* name) { return name == nullptr ? 0.0f : static_cast<float>(op.number(name)); };
  Operation operation{supported->form, attribute(supported->alpha), attribute(supported->beta)};
  switch (op.kind) {
    case OpKind::Quantize:
      is_quantized_ = true;
      scale_ = op.attribute<std::vector<float>>("scales")[0];
      if (op.has_attribute("zps") && !op.attribute<std::vector<int64_t>>("zps").empty())
        zero_point_ = static_cast<int32_t>(op.attribute<std::vector<int64_t>>("zps")[0]);
      return;
    case OpKind::GELU:
      if (op.attribute<std::string>("mode") != "gelu_erf") operation.algorithm = algorithm::eltwise_gelu_tanh;
      break;
    case OpKind::HardSwish: operation.alpha = 1.0f / 6, operation.beta = 0.5f; break;
    default: break;
  }
  operations_.push_back(operation);
}

// x + s * (q - z) is s * (x / s - z + q), and x * (s * q) is s * (x * q).
void PostOpAttributes::add_binary(const Op& op, const PostOpOperand& operand, int number) {
  const bool is_moved = operand.scale != 1 || operand.zero_point != 0;
  if (op.kind == OpKind::Add && is_moved)
    operations_.push_back({algorithm::eltwise_linear, 1 / operand.scale, -static_cast<float>(operand.zero_point)});
  operations_.push_back({find(op.kind)->form, 0, 0, number});
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
