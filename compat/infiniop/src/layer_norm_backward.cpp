// infiniopLayerNormBackward: the gradient of layer normalisation, for an input that is already normalised.
#include <algorithm>
#include <array>

#include "objects.h"

namespace lamina::infiniop {
namespace {

using arg = lamina::layer_norm::arg;

// A tensor of the operator: its name in messages, its argument of lamina's layer norm, its description.
struct Operand {
  const char* name;
  arg position;
  const TensorDescriptor* tensor;  // null: this gradient is not computed
  bool is_output;
};
using Operands = std::array<Operand, 7>;

std::string to_string(const std::vector<int64_t>& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "(" : ", ") + std::to_string(dim);
  return text.empty() ? "()" : text + ")";
}

class LayerNormBackward {
 public:
  explicit LayerNormBackward(const Operands& operands)
      : engine_(lamina::engine::kind::cpu, 0),
        stream_(engine_),
        norm_(describe(operands), engine_),
        element_(element_size(operands)) {
    for (const Operand& operand : operands) {
      if (operand.tensor == nullptr) continue;
      const auto& shape = operand.tensor->shape;
      const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
      used_.push_back({operand.name, operand.position, empty});
    }
    workspace_size_ = norm_.get_workspace_size();
  }

  size_t workspace_size() const { return workspace_size_; }

  void execute(void* const* memory, void* workspace, size_t workspace_size) const {
    for (const Used& used : used_) {
      const void* const address = memory[static_cast<size_t>(used.position)];
      if (!used.empty) require(address, used.name);
      if (reinterpret_cast<uintptr_t>(address) % element_ != 0)
        refuse(INFINI_STATUS_BAD_TENSOR_DTYPE, std::string(used.name) + " is at an address that is not a multiple of " +
                                                   std::to_string(element_) + ", the size of its elements");
    }
    if (workspace_size < workspace_size_)
      refuse(INFINI_STATUS_INSUFFICIENT_WORKSPACE, "workspace_size is " + std::to_string(workspace_size) + ", " +
                                                       std::to_string(workspace_size_) + " bytes are needed");
    if (workspace_size_ > 0) require(workspace, "workspace");
    const lamina_status_t status = lamina_layer_norm_execute(norm_.get(), stream_.get(), memory, workspace, workspace_size);
    if (status == lamina_invalid_arguments) refuse(INFINI_STATUS_BAD_PARAM, lamina_last_error());
    lamina::error::wrap_c_api(status);
  }

 private:
  struct Used {
    const char* name;
    arg position;
    bool empty;  // has no elements: null memory is legal
  };

  static size_t element_size(const Operands& operands) { return operands.front().tensor->dtype == INFINI_DTYPE_F32 ? 4 : 2; }

  static lamina::graph::logical_tensor::data_type type_of(infiniDtype_t dtype) {
    using type = lamina::graph::logical_tensor::data_type;
    return dtype == INFINI_DTYPE_F32 ? type::f32 : dtype == INFINI_DTYPE_F16 ? type::f16 : type::bf16;
  }

  static lamina::layer_norm::description describe(const Operands& operands) {
    lamina::layer_norm::description what;
    what.direction = lamina::layer_norm::pass::backward;
    what.flags = lamina_layer_norm_use_stats | lamina_layer_norm_use_scale | lamina_layer_norm_src_is_normalized;
    what.stats = lamina::layer_norm::stats_kind::std;
    for (const Operand& operand : operands) {
      if (operand.tensor == nullptr) continue;
      if (operand.position == arg::diff_shift) what.flags |= lamina_layer_norm_use_shift;
      what.tensors[operand.position] = {0, type_of(operand.tensor->dtype), operand.tensor->shape, operand.tensor->strides};
    }
    return what;
  }

  lamina::engine engine_;
  lamina::stream stream_;
  lamina::layer_norm norm_;
  std::vector<Used> used_;
  size_t element_, workspace_size_ = 0;
};

// ---- requirements on descriptors

const TensorDescriptor& tensor_of(const Operands& operands, arg position) {
  return *std::find_if(operands.begin(), operands.end(), [&](const Operand& o) { return o.position == position; })->tensor;
}

void check_types(const Operands& operands) {
  const infiniDtype_t type = tensor_of(operands, arg::diff_dst).dtype;
  for (const Operand& operand : operands) {
    if (operand.tensor == nullptr) continue;
    const infiniDtype_t given = operand.tensor->dtype;
    if (given != INFINI_DTYPE_F16 && given != INFINI_DTYPE_F32 && given != INFINI_DTYPE_BF16)
      refuse(INFINI_STATUS_BAD_TENSOR_DTYPE,
             std::string(operand.name) + " has type " + std::to_string(given) + ", allowed are F16 (12), F32 (13), BF16 (19)");
    if (given != type)
      refuse(INFINI_STATUS_BAD_TENSOR_DTYPE, std::string(operand.name) + " has type " + std::to_string(given) +
                                                 ", grad_output_desc has " + std::to_string(type) +
                                                 "; all tensors must have the same type");
  }
}

void check_shapes(const Operands& operands) {
  const std::vector<int64_t>& data = tensor_of(operands, arg::diff_dst).shape;
  if (data.empty() || data.size() > LAMINA_MAX_NDIMS)
    refuse(INFINI_STATUS_BAD_TENSOR_SHAPE, "grad_output_desc has " + std::to_string(data.size()) + " dims, allowed is 1 to 12");
  const std::vector<int64_t> rows(data.begin(), data.end() - 1), columns{data.back()};
  for (const Operand& operand : operands) {
    if (operand.tensor == nullptr) continue;
    const bool is_data = operand.position <= arg::diff_src;
    const std::vector<int64_t>& wanted = is_data ? data : operand.position == arg::variance ? rows : columns;
    if (operand.tensor->shape != wanted)
      refuse(INFINI_STATUS_BAD_TENSOR_SHAPE, std::string(operand.name) + " has shape " + to_string(operand.tensor->shape) +
                                                 ", with grad_output_desc " + to_string(data) + " allowed is " +
                                                 to_string(wanted));
  }
}

// Elements of an output must not share memory. A stride of 0 is the obvious case.
void check_strides(const Operands& operands) {
  for (const Operand& operand : operands) {
    if (operand.tensor == nullptr) continue;
    const auto& [shape, strides, dtype] = *operand.tensor;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (strides[d] < 0 || (operand.is_output && strides[d] == 0 && shape[d] > 1))
        refuse(INFINI_STATUS_BAD_TENSOR_STRIDES, std::string(operand.name) + " has strides " + to_string(strides) +
                                                     ", allowed are " + (operand.is_output ? "1 or more" : "0 or more"));
    }
    const bool is_data = operand.position <= arg::diff_src;
    if (is_data && shape.back() > 1 && strides.back() != 1)
      refuse(INFINI_STATUS_BAD_TENSOR_STRIDES, std::string(operand.name) + " has strides " + to_string(strides) +
                                                   ", the last must be 1: the last dim is contiguous");
  }
}

}  // namespace
}  // namespace lamina::infiniop

using namespace lamina::infiniop;

struct InfiniopLayerNormBackwardDescriptor : lamina::HandleSlot<const LayerNormBackward> {};

infiniStatus_t infiniopCreateLayerNormBackwardDescriptor(
    infiniopHandle_t handle, infiniopLayerNormBackwardDescriptor_t* desc_ptr, infiniopTensorDescriptor_t grad_input_desc,
    infiniopTensorDescriptor_t grad_weight_desc, infiniopTensorDescriptor_t grad_bias_desc,
    infiniopTensorDescriptor_t grad_output_desc, infiniopTensorDescriptor_t weight_desc,
    infiniopTensorDescriptor_t input_standardization_desc, infiniopTensorDescriptor_t input_std_deviation_desc) {
  return guarded(__func__, [&] {
    const Handle& device = content_of(handle, "handle");
    require(desc_ptr, "desc_ptr");
    const auto needed = [](infiniopTensorDescriptor_t tensor, const char* name) { return &content_of(tensor, name); };
    const Operands operands = {{
        {"grad_input_desc", arg::diff_src, needed(grad_input_desc, "grad_input_desc"), true},
        {"grad_weight_desc", arg::diff_scale, needed(grad_weight_desc, "grad_weight_desc"), true},
        {"grad_bias_desc", arg::diff_shift, grad_bias_desc == nullptr ? nullptr : needed(grad_bias_desc, "grad_bias_desc"),
         true},
        {"grad_output_desc", arg::diff_dst, needed(grad_output_desc, "grad_output_desc"), false},
        {"weight_desc", arg::scale, needed(weight_desc, "weight_desc"), false},
        {"input_standardization_desc", arg::src, needed(input_standardization_desc, "input_standardization_desc"), false},
        {"input_std_deviation_desc", arg::variance, needed(input_std_deviation_desc, "input_std_deviation_desc"), false},
    }};
    if (device.device != INFINI_DEVICE_CPU)
      refuse(INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED,
             "the handle is for device " + std::to_string(device.device) + ", allowed is the CPU (0)");
    check_types(operands);
    check_shapes(operands);
    check_strides(operands);
    *desc_ptr = lamina::HandleTable<InfiniopLayerNormBackwardDescriptor>::instance().put(
        std::make_unique<const LayerNormBackward>(operands));
  });
}

infiniStatus_t infiniopGetLayerNormBackwardWorkspaceSize(infiniopLayerNormBackwardDescriptor_t desc, size_t* size) {
  return guarded(__func__, [&] {
    const LayerNormBackward& norm = content_of(desc, "desc");
    require(size, "size");
    *size = norm.workspace_size();
  });
}

infiniStatus_t infiniopLayerNormBackward(infiniopLayerNormBackwardDescriptor_t desc, void* workspace, size_t workspace_size,
                                         void* grad_input, void* grad_weight, void* grad_bias, const void* grad_output,
                                         const void* weight, const void* input_standardization, const void* input_std_deviation,
                                         void*) {
  return guarded(__func__, [&] {
    const LayerNormBackward& norm = content_of(desc, "desc");
    void* memory[lamina_layer_norm_arg_count] = {};
    memory[lamina_layer_norm_diff_src] = grad_input;
    memory[lamina_layer_norm_diff_scale] = grad_weight;
    memory[lamina_layer_norm_diff_shift] = grad_bias;
    memory[lamina_layer_norm_diff_dst] = const_cast<void*>(grad_output);
    memory[lamina_layer_norm_scale] = const_cast<void*>(weight);
    memory[lamina_layer_norm_src] = const_cast<void*>(input_standardization);
    memory[lamina_layer_norm_variance] = const_cast<void*>(input_std_deviation);
    norm.execute(memory, workspace, workspace_size);
  });
}

infiniopStatus_t infiniopDestroyLayerNormBackwardDescriptor(infiniopLayerNormBackwardDescriptor_t desc) {
  return guarded(__func__, [&] { destroy(desc, "desc"); });
}
