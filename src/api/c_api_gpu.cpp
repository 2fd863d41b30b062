// Engines and streams on the caller's CUDA and OpenCL objects.
#include <cstdint>

#include "api/boundary.h"
#include "api/objects.h"
#include "graph/cuda.h"
#include "graph/opencl.h"

namespace lamina::api {
namespace {

lamina_engine_t engine_on(std::shared_ptr<const Backend> device, Allocator allocator) {
  auto engine = std::make_unique<lamina_engine>();
  engine->kind = EngineKind::gpu;
  engine->backend = device.get();
  engine->device = std::move(device);
  engine->allocator = std::move(allocator);
  return engine.release();
}

lamina_stream_t stream_on(const char* function_name, const_lamina_engine_t engine, std::string_view api, void* native) {
  if (engine->device == nullptr || engine->device->name() != api) {
    throw Error(Status::invalid_arguments,
                join(function_name, ": the engine runs on ", engine->backend->name(), ", needed is ", api));
  }
  return new lamina_stream{engine->allocator, engine->device, native, std::nullopt, const_cast<lamina_engine_t>(engine)};
}

template <typename Allocate, typename Deallocate>
void require_both(const char* function_name, Allocate allocate, Deallocate deallocate) {
  if (allocate == nullptr || deallocate == nullptr) {
    throw Error(Status::invalid_arguments, join(function_name, ": pass both functions of the allocator"));
  }
}

// Creates an allocator with these two callbacks of the caller in the given fields.
template <typename Allocate, typename Deallocate>
lamina_graph_allocator_t allocator_of(const char* function_name, Allocate lamina_graph_allocator::* allocate_field,
                                      Allocate allocate, Deallocate lamina_graph_allocator::* deallocate_field,
                                      Deallocate deallocate) {
  require_both(function_name, allocate, deallocate);
  auto created = std::make_unique<lamina_graph_allocator>();
  (*created).*allocate_field = allocate;
  (*created).*deallocate_field = deallocate;
  return created.release();
}

// The caller's callbacks bound to one context. `last`: further arguments of the deallocation, after the context.
template <typename Allocate, typename Deallocate, typename Device, typename Context, typename... Last>
Allocator in_context(const char* function_name, Allocate allocate, Deallocate deallocate, Device device, Context context,
                     Last... last) {
  require_both(function_name, allocate, deallocate);
  Allocator callbacks;
  callbacks.device_allocate = [=](size_t size, size_t alignment) { return allocate(size, alignment, device, context); };
  callbacks.device_deallocate = [=](void* memory) { deallocate(memory, device, context, last...); };
  return callbacks;
}

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;

extern "C" {

lamina_status_t lamina_ocl_interop_engine_create(lamina_engine_t* engine, cl_device_id device, cl_context context) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(engine);
    LAMINA_REQUIRE(device);
    LAMINA_REQUIRE(context);
    *engine = engine_on(lamina::open_opencl_backend(device, context), {});
  });
}

lamina_status_t lamina_ocl_interop_stream_create(lamina_stream_t* stream, const_lamina_engine_t engine,
                                                 cl_command_queue queue) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(stream);
    LAMINA_REQUIRE(engine);
    LAMINA_REQUIRE(queue);
    *stream = stream_on(function_name, engine, "opencl", queue);
  });
}

lamina_status_t lamina_graph_ocl_interop_allocator_create(lamina_graph_allocator_t* allocator,
                                                          lamina_graph_ocl_allocate_f ocl_malloc,
                                                          lamina_graph_ocl_deallocate_f ocl_free) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(allocator);
    *allocator = allocator_of(function_name, &lamina_graph_allocator::ocl_allocate, ocl_malloc,
                              &lamina_graph_allocator::ocl_deallocate, ocl_free);
  });
}

lamina_status_t lamina_graph_ocl_interop_make_engine_with_allocator(lamina_engine_t* engine, cl_device_id device,
                                                                    cl_context context,
                                                                    const_lamina_graph_allocator_t allocator) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(engine);
    LAMINA_REQUIRE(device);
    LAMINA_REQUIRE(context);
    LAMINA_REQUIRE(allocator);
    lamina::Allocator callbacks =
        in_context(function_name, allocator->ocl_allocate, allocator->ocl_deallocate, device, context, nullptr);
    *engine = engine_on(lamina::open_opencl_backend(device, context), std::move(callbacks));
  });
}

lamina_status_t lamina_cuda_interop_engine_create(lamina_engine_t* engine, CUdevice device, CUcontext context) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(engine);
    *engine = engine_on(lamina::open_cuda_backend(device, context), {});
  });
}

lamina_status_t lamina_cuda_interop_stream_create(lamina_stream_t* stream, const_lamina_engine_t engine, CUstream cuda_stream) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(stream);
    LAMINA_REQUIRE(engine);
    // Internally, null means the engine's own stream, so null from the caller becomes the legacy default stream's explicit
    // handle.
    const auto legacy = reinterpret_cast<CUstream>(uintptr_t{1});
    *stream = stream_on(function_name, engine, "cuda", cuda_stream == nullptr ? legacy : cuda_stream);
  });
}

lamina_status_t lamina_graph_cuda_interop_allocator_create(lamina_graph_allocator_t* allocator,
                                                           lamina_graph_cuda_allocate_f cuda_malloc,
                                                           lamina_graph_cuda_deallocate_f cuda_free) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(allocator);
    *allocator = allocator_of(function_name, &lamina_graph_allocator::cuda_allocate, cuda_malloc,
                              &lamina_graph_allocator::cuda_deallocate, cuda_free);
  });
}

lamina_status_t lamina_graph_cuda_interop_make_engine_with_allocator(lamina_engine_t* engine, CUdevice device,
                                                                     CUcontext context,
                                                                     const_lamina_graph_allocator_t allocator) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(engine);
    LAMINA_REQUIRE(allocator);
    lamina::Allocator callbacks =
        in_context(function_name, allocator->cuda_allocate, allocator->cuda_deallocate, device, context);
    *engine = engine_on(lamina::open_cuda_backend(device, context), std::move(callbacks));
  });
}

}  // extern "C"
