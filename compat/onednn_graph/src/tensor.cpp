// Tensors: a logical tensor with memory.
#include <graph/lamina.h>

#include <memory>
#include <utility>

#include "boundary.h"
#include "engines.h"
#include "partition.h"
#include "vocabulary.h"

namespace onednn_graph {
namespace {

bool is_host_scalar(const dnnl_graph_logical_tensor_t& tensor) { return number_of(tensor.property) == kHostScalar; }

dnnl_status_t make_scalar(const dnnl_graph_logical_tensor_t& logical, dnnl_engine_t engine, const void* value,
                          dnnl_graph_tensor_t& tensor) {
  if (any_null(value) || !is_host_scalar(logical)) return dnnl_invalid_arguments;
  const lamina_graph_logical_tensor_t described = lamina_tensor(logical);
  lamina_graph_tensor_t ours = nullptr;
  const lamina_status_t status = lamina_graph_tensor_create_scalar(&ours, &described, value);
  if (status != lamina_success) return status_of(status);
  LaminaTensor owned(ours);
  tensor = new dnnl_graph_tensor{logical, engine, nullptr, std::move(owned)};
  return dnnl_success;
}

// If lamina cannot execute with such a tensor, for example because it lacks the type, the tensor is still created, and its
// handle can be queried.
dnnl_status_t make_tensor(const dnnl_graph_logical_tensor_t& logical, dnnl_engine_t engine, void* handle,
                          dnnl_graph_tensor_t& tensor) {
  OurEngine ours_of_engine;
  if (const dnnl_status_t status = lamina_engine_of(engine, ours_of_engine); status != dnnl_success) return status;
  const lamina_graph_logical_tensor_t described = lamina_tensor(logical);
  lamina_graph_tensor_t ours = nullptr;
  const lamina_status_t status = lamina_graph_tensor_create(&ours, &described, ours_of_engine.engine, handle);
  LaminaTensor owned(ours);
  if (status == lamina_out_of_memory || (status != lamina_success && handle == kAllocate)) return dnnl_out_of_memory;
  tensor = new dnnl_graph_tensor{logical, engine, handle, std::move(owned)};
  return dnnl_success;
}

}  // namespace
}  // namespace onednn_graph

using namespace onednn_graph;

extern "C" {

dnnl_status_t dnnl_graph_tensor_create(dnnl_graph_tensor_t* tensor, const dnnl_graph_logical_tensor_t* logical_tensor,
                                       dnnl_engine_t engine, void* handle) {
  return guarded([&] {
    if (any_null(tensor, logical_tensor, engine)) return dnnl_invalid_arguments;
    const bool is_scalar = is_host_scalar(*logical_tensor) && handle != kAllocate;
    return is_scalar ? make_scalar(*logical_tensor, engine, handle, *tensor)
                     : make_tensor(*logical_tensor, engine, handle, *tensor);
  });
}

dnnl_status_t dnnl_graph_tensor_create_scalar(dnnl_graph_tensor_t* tensor, const dnnl_graph_logical_tensor_t* logical_tensor,
                                              void* scalar) {
  return guarded([&] {
    if (any_null(tensor, logical_tensor)) return dnnl_invalid_arguments;
    return make_scalar(*logical_tensor, nullptr, scalar, *tensor);
  });
}

dnnl_status_t dnnl_graph_tensor_destroy(dnnl_graph_tensor_t tensor) {
  delete tensor;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_get_data_handle(const_dnnl_graph_tensor_t tensor, void** handle) {
  if (any_null(tensor, handle)) return dnnl_invalid_arguments;
  if (tensor->tensor != nullptr) return status_of(lamina_graph_tensor_get_data_handle(tensor->tensor.get(), handle));
  *handle = tensor->handle;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_set_data_handle(dnnl_graph_tensor_t tensor, void* handle) {
  if (any_null(tensor)) return dnnl_invalid_arguments;
  if (tensor->tensor != nullptr) {
    void* present = nullptr;
    lamina_status_t status = lamina_graph_tensor_get_data_handle(tensor->tensor.get(), &present);
    if (status == lamina_success && present == handle) return dnnl_success;  // keeps memory that lamina allocated
    if (status == lamina_success) status = lamina_graph_tensor_set_data_handle(tensor->tensor.get(), handle);
    if (status != lamina_success) return status_of(status);
  }
  tensor->handle = handle;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_get_engine(const_dnnl_graph_tensor_t tensor, dnnl_engine_t* engine) {
  if (any_null(tensor, engine)) return dnnl_invalid_arguments;
  *engine = tensor->engine;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_get_logical_tensor(const_dnnl_graph_tensor_t tensor,
                                                   dnnl_graph_logical_tensor_t* logical_tensor) {
  if (any_null(tensor, logical_tensor)) return dnnl_invalid_arguments;
  *logical_tensor = tensor->logical;
  return dnnl_success;
}

}  // extern "C"
