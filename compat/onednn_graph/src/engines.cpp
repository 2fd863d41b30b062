// Engines, streams and allocators. The real libdnnl creates them and reports their kind; if it is not loaded, they are
// created here. An engine with an allocator is registered with a lamina engine that uses this allocator.
#include "engines.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "boundary.h"
#include "handle.h"
#include "locks.h"
#include "real_library.h"
#include "vocabulary.h"

// Created without the real library.
struct dnnl_engine {
  dnnl_engine_kind_t kind;
};
struct dnnl_stream {
  dnnl_engine_t engine;
};

struct dnnl_graph_allocator {
  dnnl_graph_host_allocate_f allocate;
  dnnl_graph_host_deallocate_f release;
};

namespace onednn_graph {
namespace {

struct EngineAndStream {
  LaminaEngine engine;
  LaminaStream stream;
  OurEngine get() const { return {engine.get(), stream.get()}; }
};

dnnl_status_t add_stream(EngineAndStream& ours) {
  lamina_stream_t made = nullptr;
  const lamina_status_t status = lamina_stream_create(&made, ours.engine.get(), lamina_stream_default_flags);
  ours.stream.reset(made);
  return status_of(status);
}

// This library's knowledge about handles. Never destroyed: destructors of static objects may destroy handles.
class Registry {
 public:
  static Registry& instance() {
    static Registry* const registry = new Registry;
    return *registry;
  }

  // Streams and engines that were created here.
  bool is_own(const void* handle) const {
    if (num_own_.load(std::memory_order_acquire) == 0) return false;
    const std::lock_guard lock(mutex_);
    return own_.count(handle) != 0;
  }
  void add_own(const void* handle) {
    const std::lock_guard lock(mutex_);
    own_.insert(handle);
    ++num_own_;
  }
  bool remove_own(const void* handle) {
    const std::lock_guard lock(mutex_);
    if (own_.erase(handle) == 0) return false;
    --num_own_;
    return true;
  }

  void remember(const void* engine, EngineAndStream ours) {
    const std::lock_guard lock(mutex_);
    with_allocator_[engine] = std::move(ours);
    num_with_allocator_ = with_allocator_.size();
  }
  void forget(const void* engine) {
    if (num_with_allocator_ == 0) return;
    const std::lock_guard lock(mutex_);
    with_allocator_.erase(engine);
    num_with_allocator_ = with_allocator_.size();
  }
  // Null members for an engine without its own allocator.
  OurEngine remembered(const void* engine) const {
    if (num_with_allocator_ == 0) return {};
    const std::lock_guard lock(mutex_);
    const auto found = with_allocator_.find(engine);
    return found == with_allocator_.end() ? OurEngine{} : found->second.get();
  }

 private:
  mutable lamina::Mutex mutex_{lamina::LockRow::front_end_inner};
  std::atomic<size_t> num_own_{0}, num_with_allocator_{0};
  std::unordered_set<const void*> own_;
  std::unordered_map<const void*, EngineAndStream> with_allocator_;
};

Registry& registry() { return Registry::instance(); }

// Asks the real library about a handle that was not created here; without the real library such a handle is invalid.
template <typename Function, typename... Args>
dnnl_status_t ask_real(Function RealLibrary::* function, Args... args) {
  const RealLibrary* const real = real_library();
  return real == nullptr ? dnnl_invalid_arguments : (real->*function)(args...);
}

// The CPU engine with lamina's default allocator; never destroyed. If creating it fails, the next call retries.
OurEngine plain_cpu() {
  static std::atomic<const EngineAndStream*> known{nullptr};
  if (const EngineAndStream* const ours = known.load(std::memory_order_acquire)) return ours->get();
  auto made = std::make_unique<EngineAndStream>();
  lamina_engine_t engine = nullptr;
  if (lamina_engine_create(&engine, lamina_cpu, 0) != lamina_success) return {};
  made->engine.reset(engine);
  if (add_stream(*made) != dnnl_success) return {};
  const EngineAndStream* first = nullptr;
  if (known.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel)) first = made.release();
  return first->get();
}

dnnl_status_t create_engine(dnnl_engine_t* engine, int number, size_t index) {
  if (any_null(engine) || (number != dnnl_cpu && number != dnnl_gpu)) return dnnl_invalid_arguments;
  const auto kind = static_cast<dnnl_engine_kind_t>(number);
  if (const RealLibrary* const real = real_library()) {
    const dnnl_status_t status = real->engine_create(engine, kind, index);
    if (status == dnnl_success) registry().forget(*engine);  // drops the entry of a destroyed engine at the same address
    return status;
  }
  if (kind != dnnl_cpu || index != 0) return dnnl_invalid_arguments;
  auto made = std::make_unique<dnnl_engine>(dnnl_engine{kind});
  registry().add_own(made.get());
  *engine = made.release();
  return dnnl_success;
}

dnnl_status_t create_stream(dnnl_stream_t* stream, dnnl_engine_t engine, unsigned flags) {
  if (any_null(stream, engine)) return dnnl_invalid_arguments;
  if (!registry().is_own(engine)) return ask_real(&RealLibrary::stream_create, stream, engine, flags);
  if (flags != dnnl_stream_in_order && flags != dnnl_stream_out_of_order) return dnnl_invalid_arguments;
  auto made = std::make_unique<dnnl_stream>(dnnl_stream{engine});
  registry().add_own(made.get());
  *stream = made.release();
  return dnnl_success;
}

// Creates a lamina engine with the callbacks; stays null unless both are given.
dnnl_status_t make_with_callbacks(const dnnl_graph_allocator& callbacks, EngineAndStream& ours) {
  if (callbacks.allocate == nullptr || callbacks.release == nullptr) return dnnl_success;
  lamina_graph_allocator_t allocator = nullptr;
  lamina_status_t status = lamina_graph_allocator_create(&allocator, callbacks.allocate, callbacks.release);
  if (status != lamina_success) return status_of(status);
  const LaminaAllocator owned(allocator);
  lamina_engine_t made = nullptr;
  status = lamina_graph_make_engine_with_allocator(&made, lamina_cpu, 0, allocator);
  ours.engine.reset(made);
  return status == lamina_success ? add_stream(ours) : status_of(status);
}

}  // namespace

dnnl_status_t kind_of(dnnl_engine_t engine, dnnl_engine_kind_t& kind) {
  if (any_null(engine)) return dnnl_invalid_arguments;
  if (!registry().is_own(engine)) return ask_real(&RealLibrary::engine_get_kind, engine, &kind);
  kind = engine->kind;
  return dnnl_success;
}

dnnl_status_t engine_of(const_dnnl_stream_t stream, dnnl_engine_t& engine) {
  if (any_null(stream)) return dnnl_invalid_arguments;
  if (!registry().is_own(stream)) return ask_real(&RealLibrary::stream_get_engine, stream, &engine);
  engine = stream->engine;
  return dnnl_success;
}

dnnl_status_t wait_for(dnnl_stream_t stream) {
  if (any_null(stream)) return dnnl_invalid_arguments;
  if (registry().is_own(stream)) return dnnl_success;  // execution is synchronous
  return ask_real(&RealLibrary::stream_wait, stream);
}

dnnl_status_t lamina_engine_of(dnnl_engine_t engine, OurEngine& ours) {
  dnnl_engine_kind_t kind = dnnl_any_engine;
  if (const dnnl_status_t status = kind_of(engine, kind); status != dnnl_success) return status;
  if (kind != dnnl_cpu) return dnnl_unimplemented;
  ours = registry().remembered(engine);
  if (ours.engine == nullptr) ours = plain_cpu();
  return ours.engine == nullptr ? dnnl_out_of_memory : dnnl_success;
}

}  // namespace onednn_graph

using namespace onednn_graph;

extern "C" {

size_t dnnl_engine_get_count(dnnl_engine_kind_t kind) {
  const int number = number_of(kind);
  if (number != dnnl_cpu && number != dnnl_gpu) return 0;
  if (const RealLibrary* const real = real_library()) return real->engine_get_count(kind);
  return number == dnnl_cpu ? 1 : 0;
}

dnnl_status_t dnnl_engine_create(dnnl_engine_t* engine, dnnl_engine_kind_t kind, size_t index) {
  return guarded([&] { return create_engine(engine, number_of(kind), index); });
}

dnnl_status_t dnnl_engine_get_kind(dnnl_engine_t engine, dnnl_engine_kind_t* kind) {
  return guarded([&] { return any_null(kind) ? dnnl_invalid_arguments : kind_of(engine, *kind); });
}

dnnl_status_t dnnl_engine_destroy(dnnl_engine_t engine) {
  return guarded([&] {
    if (any_null(engine)) return dnnl_success;
    registry().forget(engine);
    if (registry().remove_own(engine)) {
      delete engine;
      return dnnl_success;
    }
    return ask_real(&RealLibrary::engine_destroy, engine);
  });
}

dnnl_status_t dnnl_stream_create(dnnl_stream_t* stream, dnnl_engine_t engine, unsigned flags) {
  return guarded([&] { return create_stream(stream, engine, flags); });
}

dnnl_status_t dnnl_stream_get_engine(const_dnnl_stream_t stream, dnnl_engine_t* engine) {
  return guarded([&] { return any_null(engine) ? dnnl_invalid_arguments : engine_of(stream, *engine); });
}

dnnl_status_t dnnl_stream_wait(dnnl_stream_t stream) {
  return guarded([&] { return wait_for(stream); });
}

dnnl_status_t dnnl_stream_destroy(dnnl_stream_t stream) {
  return guarded([&] {
    if (any_null(stream)) return dnnl_success;
    if (registry().remove_own(stream)) {
      delete stream;
      return dnnl_success;
    }
    return ask_real(&RealLibrary::stream_destroy, stream);
  });
}

dnnl_status_t dnnl_graph_allocator_create(dnnl_graph_allocator_t* allocator, dnnl_graph_host_allocate_f host_malloc,
                                          dnnl_graph_host_deallocate_f host_free) {
  return guarded([&] {
    if (any_null(allocator)) return dnnl_invalid_arguments;
    *allocator = new dnnl_graph_allocator{host_malloc, host_free};
    return dnnl_success;
  });
}

dnnl_status_t dnnl_graph_allocator_destroy(dnnl_graph_allocator_t allocator) {
  if (any_null(allocator)) return dnnl_invalid_arguments;
  delete allocator;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_make_engine_with_allocator(dnnl_engine_t* engine, dnnl_engine_kind_t kind, size_t index,
                                                    const_dnnl_graph_allocator_t alloc) {
  return guarded([&] {
    if (any_null(engine, alloc)) return dnnl_invalid_arguments;
    EngineAndStream ours;
    if (number_of(kind) == dnnl_cpu) {
      if (const dnnl_status_t status = make_with_callbacks(*alloc, ours); status != dnnl_success) return status;
    }
    dnnl_engine_t made = nullptr;
    if (const dnnl_status_t status = create_engine(&made, number_of(kind), index); status != dnnl_success) return status;
    if (ours.engine != nullptr) registry().remember(made, std::move(ours));
    *engine = made;
    return dnnl_success;
  });
}

}  // extern "C"
