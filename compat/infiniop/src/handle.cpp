// Devices, streams, handles and tensor descriptors.
#include "objects.h"

namespace lamina::infiniop {
namespace {

thread_local Handle current{INFINI_DEVICE_CPU, 0};

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    if (__builtin_mul_overflow(stride, shape[d] > 0 ? shape[d] : 1, &stride))
      refuse(INFINI_STATUS_BAD_TENSOR_SHAPE, "the tensor's size does not fit 64 bits");
  }
  return strides;
}

}  // namespace
}  // namespace lamina::infiniop

using namespace lamina::infiniop;

infiniStatus_t infinirtSetDevice(infiniDevice_t device, int device_id) {
  return guarded(__func__, [&] {
    const int kind = static_cast<int>(device);
    if (kind < 0 || kind >= INFINI_DEVICE_TYPE_COUNT)
      refuse(INFINI_STATUS_BAD_PARAM, "device " + std::to_string(kind) + " does not exist");
    if (device_id < 0) refuse(INFINI_STATUS_BAD_PARAM, "device_id is " + std::to_string(device_id) + ", allowed is 0 or more");
    current = {device, device_id};
  });
}

infiniStatus_t infinirtGetDevice(infiniDevice_t* device, int* device_id) {
  return guarded(__func__, [&] {
    require(device, "device");
    require(device_id, "device_id");
    *device = current.device;
    *device_id = current.device_id;
  });
}

infiniStatus_t infinirtStreamCreate(infinirtStream_t* stream) {
  return guarded(__func__, [&] {
    require(stream, "stream");
    auto content = std::make_unique<Stream>(Stream{lamina::stream(lamina::engine(lamina::engine::kind::cpu, 0))});
    *stream = lamina::HandleTable<InfinirtStream>::instance().put(std::move(content));
  });
}

infiniStatus_t infinirtStreamSynchronize(infinirtStream_t stream) {
  return guarded(__func__, [&] { content_of(static_cast<InfinirtStream*>(stream), "stream").stream.wait(); });
}

infiniStatus_t infinirtStreamDestroy(infinirtStream_t stream) {
  return guarded(__func__, [&] { destroy(static_cast<InfinirtStream*>(stream), "stream"); });
}

infiniStatus_t infiniopCreateHandle(infiniopHandle_t* handle_ptr) {
  return guarded(__func__, [&] {
    require(handle_ptr, "handle_ptr");
    if (current.device == INFINI_DEVICE_CPU && current.device_id != 0)
      refuse(INFINI_STATUS_DEVICE_NOT_FOUND, "there is no CPU " + std::to_string(current.device_id) + ", allowed is 0");
    *handle_ptr = lamina::HandleTable<InfiniopHandle>::instance().put(std::make_unique<const Handle>(current));
  });
}

infiniStatus_t infiniopDestroyHandle(infiniopHandle_t handle) {
  return guarded(__func__, [&] { destroy(handle, "handle"); });
}

infiniStatus_t infiniopCreateTensorDescriptor(infiniopTensorDescriptor_t* desc_ptr, size_t ndim, const size_t* shape,
                                              const ptrdiff_t* strides, infiniDtype_t dtype) {
  return guarded(__func__, [&] {
    require(desc_ptr, "desc_ptr");
    if (ndim > 0) require(shape, "shape");
    auto tensor = std::make_unique<TensorDescriptor>();
    for (size_t d = 0; d < ndim; ++d) {
      if (shape[d] > static_cast<size_t>(INT64_MAX)) refuse(INFINI_STATUS_BAD_TENSOR_SHAPE, "a dim does not fit 63 bits");
      tensor->shape.push_back(static_cast<int64_t>(shape[d]));
    }
    tensor->strides = strides != nullptr ? std::vector<int64_t>(strides, strides + ndim) : dense_strides(tensor->shape);
    tensor->dtype = dtype;
    std::unique_ptr<const TensorDescriptor> constant = std::move(tensor);
    *desc_ptr = lamina::HandleTable<InfiniopTensorDescriptor>::instance().put(std::move(constant));
  });
}

infiniStatus_t infiniopDestroyTensorDescriptor(infiniopTensorDescriptor_t desc) {
  return guarded(__func__, [&] { destroy(desc, "desc"); });
}
