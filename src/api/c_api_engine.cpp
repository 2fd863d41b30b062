// Engines, streams and allocators.
#include "api/boundary.h"
#include "api/convert.h"
#include "api/objects.h"

namespace lamina::api {
namespace {

size_t engine_count(lamina_engine_kind_t kind) {
  if (kind == lamina_gpu) return gpu_device_count();
  return kind == lamina_cpu || kind == lamina_any_engine ? 1 : 0;
}

std::unique_ptr<lamina_engine> make_engine(lamina_engine_kind_t kind, size_t index, const Allocator& allocator) {
  const EngineKind engine_kind = checked(kind);
  const size_t count = engine_count(kind);
  if (engine_kind == EngineKind::gpu && count == 0) open_gpu_backend("");  // throws with the reason
  if (index >= count)
    throw Error(Status::invalid_arguments, join("engine index is ", index, ", there are ", count, " engines of this kind"));
  auto engine = std::make_unique<lamina_engine>();
  engine->backend = &cpu_backend();
  if (engine_kind == EngineKind::gpu) {
    engine->kind = EngineKind::gpu;
    engine->device = open_gpu_backend(index);
    engine->backend = engine->device.get();
  }
  engine->allocator = allocator;
  return engine;
}

ThreadPool copy_of(const char* function_name, const lamina_threadpool_t& pool) {
  if (pool.size != sizeof pool)
    throw Error(Status::invalid_arguments, join(function_name, ": pool->size is ", pool.size, ", allowed is ", sizeof pool,
                                                ", the size of lamina_threadpool_t"));
  const auto require_function = [&](bool is_given, const char* name) {
    if (!is_given) throw Error(Status::invalid_arguments, join(function_name, ": pool->", name, " is null"));
  };
  require_function(pool.num_threads != nullptr, "num_threads");
  require_function(pool.in_parallel != nullptr, "in_parallel");
  require_function(pool.parallel_for != nullptr, "parallel_for");
  return {pool.user, pool.num_threads, pool.in_parallel, pool.parallel_for};
}

std::unique_ptr<lamina_engine> make_engine(const char* function_name, lamina_engine_kind_t kind, size_t index,
                                           const Allocator& allocator, const lamina_threadpool_t& pool) {
  if (checked(kind) == EngineKind::gpu)
    throw Error(Status::invalid_arguments, join(function_name, ": kind is gpu, allowed with a thread pool is cpu"));
  auto engine = make_engine(kind, index, allocator);
  engine->pool = copy_of(function_name, pool);
  engine->made_for_pool = cpu_backend(*engine->pool);
  engine->backend = engine->made_for_pool.get();
  return engine;
}

void check_stream_flags(const char* function_name, const lamina_engine& engine, unsigned flags) {
  if ((flags & lamina_stream_profiling) != 0 && engine.device != nullptr)
    throw Error(Status::unimplemented, join(function_name,
                                            ": flags request profiling, which is allowed only on the CPU, the engine is a GPU; "
                                            "LAMINA_VERBOSE=1 prints the time of each execution"));
  const unsigned order = flags & ~static_cast<unsigned>(lamina_stream_profiling);
  const bool profiles_in_order = order == 0 && flags != 0;  // in order, because no order is named
  if (order != lamina_stream_in_order && order != lamina_stream_out_of_order && !profiles_in_order)
    throw Error(Status::invalid_arguments,
                join(function_name, ": flags is ", flags, ", allowed is lamina_stream_in_order (",
                     static_cast<unsigned>(lamina_stream_in_order), ") or lamina_stream_out_of_order (",
                     static_cast<unsigned>(lamina_stream_out_of_order), "), and on a CPU lamina_stream_profiling (",
                     static_cast<unsigned>(lamina_stream_profiling), "), added to one of them or alone"));
}

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;

extern "C" {

size_t lamina_engine_get_count(lamina_engine_kind_t kind) {
  size_t count = 0;
  guarded([&] { count = engine_count(kind); });
  return count;
}

lamina_status_t lamina_engine_create(lamina_engine_t* engine, lamina_engine_kind_t kind, size_t index) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(engine);
    *engine = make_engine(kind, index, {}).release();
  });
}

lamina_status_t lamina_engine_get_kind(const_lamina_engine_t engine, lamina_engine_kind_t* kind) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(engine);
    LAMINA_REQUIRE(kind);
    *kind = static_cast<lamina_engine_kind_t>(engine->kind);
  });
}

lamina_status_t lamina_engine_destroy(lamina_engine_t engine) {
  delete engine;
  return lamina_success;
}

lamina_status_t lamina_graph_allocator_create(lamina_graph_allocator_t* allocator, lamina_graph_host_allocate_f host_malloc,
                                              lamina_graph_host_deallocate_f host_free) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(allocator);
    if ((host_malloc == nullptr) != (host_free == nullptr)) {
      throw lamina::Error(lamina::Status::invalid_arguments,
                          lamina::join(function_name, ": pass both host_malloc and host_free, or neither"));
    }
    auto created = std::make_unique<lamina_graph_allocator>();
    created->callbacks.allocate = host_malloc;
    created->callbacks.deallocate = host_free;
    *allocator = created.release();
  });
}

lamina_status_t lamina_graph_allocator_destroy(lamina_graph_allocator_t allocator) {
  delete allocator;
  return lamina_success;
}

lamina_status_t lamina_graph_make_engine_with_allocator(lamina_engine_t* engine, lamina_engine_kind_t kind, size_t index,
                                                        const_lamina_graph_allocator_t allocator) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(engine);
    LAMINA_REQUIRE(allocator);
    *engine = make_engine(kind, index, allocator->callbacks).release();
  });
}

lamina_status_t lamina_graph_make_engine_with_threadpool(lamina_engine_t* engine, lamina_engine_kind_t kind, size_t index,
                                                         const_lamina_graph_allocator_t allocator,
                                                         const lamina_threadpool_t* pool) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(engine);
    LAMINA_REQUIRE(pool);
    const lamina::Allocator callbacks = allocator == nullptr ? lamina::Allocator{} : allocator->callbacks;
    *engine = make_engine(function_name, kind, index, callbacks, *pool).release();
  });
}

lamina_status_t lamina_stream_create(lamina_stream_t* stream, const_lamina_engine_t engine, unsigned flags) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(stream);
    LAMINA_REQUIRE(engine);
    check_stream_flags(function_name, *engine, flags);
    auto created = std::make_unique<lamina_stream>(
        lamina_stream{engine->allocator, engine->device, nullptr, engine->pool, const_cast<lamina_engine_t>(engine)});
    if ((flags & lamina_stream_profiling) != 0) created->profile = std::make_unique<lamina::compiler::Profile>();
    *stream = created.release();
  });
}

lamina_status_t lamina_stream_get_engine(const_lamina_stream_t stream, lamina_engine_t* engine) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(stream);
    LAMINA_REQUIRE(engine);
    *engine = stream->engine;
  });
}

lamina_status_t lamina_stream_wait(lamina_stream_t stream) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(stream);
    if (stream->device != nullptr) stream->device->device_memory()->wait(stream->native);
  });
}

lamina_status_t lamina_stream_destroy(lamina_stream_t stream) {
  delete stream;
  return lamina_success;
}

}  // extern "C"
