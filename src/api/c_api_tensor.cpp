#include <algorithm>
#include <cstring>
#include <new>

#include "api/boundary.h"
#include "api/convert.h"
#include "api/objects.h"

namespace lamina::api {
namespace {

constexpr size_t kAlignment = 64;  // the size of a cache line and of the widest vector
constexpr size_t kDeviceAlignment = 256;

void require_known_shape(const LogicalTensor& tensor) {
  if (!tensor.has_full_shape()) {
    throw Error(Status::invalid_arguments,
                join("tensor ", tensor.id, " is ", describe(tensor), "; to allocate memory its shape must be known"));
  }
}

std::shared_ptr<void> allocate(const Allocator& allocator, size_t size) {
  if (allocator.allocate != nullptr) {
    void* memory = allocator.allocate(size, kAlignment);
    if (memory == nullptr) throw std::bad_alloc();
    return {memory, allocator.deallocate};
  }
  constexpr std::align_val_t alignment{kAlignment};
  return {::operator new(size, alignment), [](void* memory) { ::operator delete(memory, std::align_val_t{kAlignment}); }};
}

std::shared_ptr<void> allocate_on(const std::shared_ptr<const Backend>& device, const Allocator& allocator, size_t size) {
  if (allocator.device_allocate) {
    void* memory = allocator.device_allocate(size, kDeviceAlignment);
    if (memory == nullptr) throw std::bad_alloc();
    return {memory, allocator.device_deallocate};
  }
  return {device->device_memory()->allocate(size), [device](void* memory) { device->device_memory()->release(memory); }};
}

// The old memory is released only after the new allocation has succeeded: a failed allocation changes nothing.
void set_memory(lamina_graph_tensor& tensor, void* handle) {
  std::shared_ptr<void> owned;
  if (handle == LAMINA_MEMORY_ALLOCATE) {
    require_known_shape(tensor.tensor);
    const auto size = static_cast<size_t>(tensor.tensor.byte_size());
    const bool on_device = tensor.device != nullptr && tensor.tensor.property != PropertyType::host_scalar;
    if (size > 0) owned = on_device ? allocate_on(tensor.device, tensor.allocator, size) : allocate(tensor.allocator, size);
    handle = owned.get();
  }
  tensor.owned = std::move(owned);
  tensor.memory = handle;
}

void check_host_scalar(const LogicalTensor& tensor) {
  if (tensor.property == PropertyType::host_scalar && tensor.rank() == 0) return;
  throw Error(Status::invalid_arguments, join("tensor ", tensor.id, " is ", describe(tensor), " with property ",
                                              name_of(tensor.property), "; a host scalar has rank 0 and property host_scalar"));
}

bool is_scalar_of_lamina(const lamina_graph_tensor& tensor) { return tensor.engine == nullptr; }

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;

extern "C" {

lamina_status_t lamina_graph_tensor_create(lamina_graph_tensor_t* tensor, const lamina_graph_logical_tensor_t* logical_tensor,
                                           const_lamina_engine_t engine, void* handle) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(tensor);
    LAMINA_REQUIRE(logical_tensor);
    LAMINA_REQUIRE(engine);
    auto created = std::make_unique<lamina_graph_tensor>();
    created->tensor = from_c(*logical_tensor);
    created->allocator = engine->allocator;
    created->device = engine->device;
    created->engine = const_cast<lamina_engine_t>(engine);
    set_memory(*created, handle);
    *tensor = created.release();
  });
}

lamina_status_t lamina_graph_tensor_create_scalar(lamina_graph_tensor_t* tensor,
                                                  const lamina_graph_logical_tensor_t* logical_tensor, const void* value) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(tensor);
    LAMINA_REQUIRE(logical_tensor);
    LAMINA_REQUIRE(value);
    auto created = std::make_unique<lamina_graph_tensor>();
    created->tensor = from_c(*logical_tensor);
    check_host_scalar(created->tensor);
    set_memory(*created, LAMINA_MEMORY_ALLOCATE);
    std::memcpy(created->memory, value, static_cast<size_t>(created->tensor.byte_size()));
    *tensor = created.release();
  });
}

lamina_status_t lamina_graph_tensor_destroy(lamina_graph_tensor_t tensor) {
  delete tensor;
  return lamina_success;
}

lamina_status_t lamina_graph_tensor_get_data_handle(const_lamina_graph_tensor_t tensor, void** handle) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(tensor);
    LAMINA_REQUIRE(handle);
    *handle = is_scalar_of_lamina(*tensor) ? nullptr : tensor->memory;
  });
}

lamina_status_t lamina_graph_tensor_set_data_handle(lamina_graph_tensor_t tensor, void* handle) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(tensor);
    if (is_scalar_of_lamina(*tensor))
      throw lamina::Error(lamina::Status::invalid_arguments,
                          lamina::join(function_name, ": tensor ", tensor->tensor.id,
                                       " is a host scalar, whose value cannot change; create a new tensor for another value"));
    if (handle == tensor->memory) return;  // set_memory would free the memory that lamina allocated
    set_memory(*tensor, handle);
  });
}

lamina_status_t lamina_graph_tensor_get_engine(const_lamina_graph_tensor_t tensor, lamina_engine_t* engine) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(tensor);
    LAMINA_REQUIRE(engine);
    *engine = tensor->engine;
  });
}

lamina_status_t lamina_graph_tensor_get_logical_tensor(const_lamina_graph_tensor_t tensor,
                                                       lamina_graph_logical_tensor_t* logical_tensor) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(tensor);
    LAMINA_REQUIRE(logical_tensor);
    *logical_tensor = to_c(tensor->tensor);
  });
}

}  // extern "C"
