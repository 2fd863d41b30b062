// The front end of infiniop: descriptors of arbitrary shapes and strides, and calls with the memory that they describe.
#include <infiniop.h>

#include <array>
#include <memory>

#include "fuzz/fuzz_input.h"

namespace {

using lamina::fuzz::FuzzInput;
using lamina::fuzz::require;

constexpr size_t kTensors = 7;  // grad_input, grad_weight, grad_bias, grad_output, weight, standardization, deviation
constexpr size_t kMaxElements = 1 << 12;

struct Tensor {
  infiniopTensorDescriptor_t descriptor = nullptr;
  bool is_small = true;
  std::array<double, kMaxElements> memory{};
  ~Tensor() { infiniopDestroyTensorDescriptor(descriptor); }

  void make(FuzzInput& in, const std::vector<size_t>& shape, infiniDtype_t type) {
    std::vector<ptrdiff_t> strides(shape.size() + 1, 1);
    for (size_t d = shape.size(); d-- > 1;)
      strides[d - 1] = static_cast<ptrdiff_t>(static_cast<size_t>(strides[d]) * std::max<size_t>(shape[d], 1));
    if (in.below(8) == 7) {
      for (ptrdiff_t& stride : strides) stride = in.extent();
    }
    double reach = 1;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool goes_back = strides[d] < 0;
      reach += goes_back ? 1e18 : static_cast<double>(shape[d]) * static_cast<double>(strides[d]);
    }
    is_small = reach < static_cast<double>(kMaxElements);
    const infiniStatus_t status = infiniopCreateTensorDescriptor(
        &descriptor, shape.size(), shape.empty() ? nullptr : shape.data(), in.below(16) == 15 ? nullptr : strides.data(), type);
    require((status == INFINI_STATUS_SUCCESS) == (descriptor != nullptr), "a descriptor is made exactly on success");
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput in(data, size);
  static const std::vector<infiniDtype_t> types = {INFINI_DTYPE_F32, INFINI_DTYPE_F16, INFINI_DTYPE_BF16,
                                                   INFINI_DTYPE_F64, INFINI_DTYPE_I32, INFINI_DTYPE_INVALID};
  std::vector<size_t> shape(in.below(5));
  for (size_t& dim : shape) dim = static_cast<size_t>(in.extent());
  const infiniDtype_t type = in.pick(types);
  const auto tensors = std::make_unique<std::array<Tensor, kTensors>>();
  bool small = true;
  for (size_t t = 0; t < kTensors; ++t) {
    std::vector<size_t> own = shape;
    if ((t == 1 || t == 2 || t == 4) && !own.empty()) own = {shape.back()};
    if (t == 6 && !own.empty()) own.pop_back();
    if (in.below(8) == 7) own.assign(in.below(4), static_cast<size_t>(in.extent()));
    (*tensors)[t].make(in, own, in.below(8) == 7 ? in.pick(types) : type);
    small = small && (*tensors)[t].is_small;
  }
  const auto at = [&](size_t t) { return in.below(32) == 31 ? nullptr : (*tensors)[t].descriptor; };
  infiniopHandle_t handle = nullptr;
  require(infiniopCreateHandle(&handle) == INFINI_STATUS_SUCCESS, "a handle");
  infiniopLayerNormBackwardDescriptor_t op = nullptr;
  const infiniStatus_t made =
      infiniopCreateLayerNormBackwardDescriptor(handle, &op, at(0), at(1), at(2), at(3), at(4), at(5), at(6));
  require((made == INFINI_STATUS_SUCCESS) == (op != nullptr), "an op is made exactly on success");
  size_t workspace_size = 0;
  infiniopGetLayerNormBackwardWorkspaceSize(op, &workspace_size);
  if (made == INFINI_STATUS_SUCCESS && small && workspace_size < (1 << 20)) {
    std::vector<std::max_align_t> workspace(workspace_size / sizeof(std::max_align_t) + 1);
    const auto memory = [&](size_t t) -> void* { return in.below(32) == 31 ? nullptr : (*tensors)[t].memory.data(); };
    infiniopLayerNormBackward(op, workspace.data(), in.below(16) == 15 ? workspace_size / 2 : workspace_size, memory(0),
                              memory(1), memory(2), memory(3), memory(4), memory(5), memory(6), nullptr);
  }
  infiniopDestroyLayerNormBackwardDescriptor(op);
  infiniopDestroyHandle(handle);
  return 0;
}
