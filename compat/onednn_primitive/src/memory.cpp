// Errors, engines, streams, memory and attributes.
#include <new>

#include "objects.h"

namespace dnnl {

error::error(dnnl_status_t astatus, const char* amessage)
    : status(astatus), message(nullptr), text_(std::make_shared<const std::string>(amessage)) {
  message = text_->c_str();
}

void fail(dnnl_status_t status, const std::string& sentence) {
  lamina_set_last_error(sentence.c_str());
  throw error(status, sentence.c_str());
}

void fail_as(const lamina::error& error) {
  switch (error.status) {
    case lamina_out_of_memory: fail(dnnl_out_of_memory, error.what());
    case lamina_invalid_data_type:
    case lamina_unimplemented: fail(dnnl_unimplemented, error.what());
    case lamina_runtime_error: fail(dnnl_runtime_error, error.what());
    default: fail(dnnl_invalid_arguments, error.what());
  }
}

namespace {

template <typename Object>
const Object& of(const std::shared_ptr<Object>& object, const char* what) {
  if (object == nullptr) fail(dnnl_invalid_arguments, std::string(what) + " is empty: it was never created");
  return *object;
}

// Null for 0 bytes.
std::shared_ptr<void> allocated(std::size_t bytes) {
  constexpr std::align_val_t kAlignment{64};
  if (bytes == 0) return nullptr;
  void* const address = ::operator new(bytes, kAlignment, std::nothrow);
  if (address == nullptr)
    fail(dnnl_out_of_memory, "memory: cannot allocate the " + std::to_string(bytes) + " bytes of its descriptor");
  return {address, [](void* p) { ::operator delete(p, kAlignment); }};
}

}  // namespace

// Memory objects are host memory, so all engines are CPU engines, although lamina itself supports other devices.
engine::engine(kind akind, std::size_t index)
    : object_(translated([&] {
        if (akind == kind::gpu) fail(dnnl_unimplemented, "engine kind gpu is not supported by this front end, allowed is cpu");
        return std::make_shared<const detail::engine_object>(
            detail::engine_object{lamina::engine(static_cast<lamina::engine::kind>(akind), index)});
      })) {}

std::size_t engine::get_count(kind akind) {
  return akind == kind::gpu ? 0 : lamina::engine::get_count(static_cast<lamina::engine::kind>(akind));
}
engine::kind engine::get_kind() const { return static_cast<kind>(object().engine.get_kind()); }
const detail::engine_object& engine::object() const { return of(object_, "the engine"); }

stream::stream(const engine& aengine, flags)
    : object_(translated([&] {
        return std::make_shared<const detail::stream_object>(
            detail::stream_object{aengine, lamina::stream(aengine.object().engine)});
      })) {}
engine stream::get_engine() const { return object().engine; }
stream& stream::wait() {
  translated([&] { lamina::stream(object().stream).wait(); });
  return *this;
}
const detail::stream_object& stream::object() const { return of(object_, "the stream"); }

memory::memory(const desc& md, const engine& aengine) : memory(md, aengine, DNNL_MEMORY_ALLOCATE) {}

memory::memory(const desc& md, const engine& aengine, void* handle) : object_(std::make_shared<detail::memory_object>()) {
  aengine.object();
  if (md.get_format_kind() == format_kind::any)
    fail(dnnl_invalid_arguments, "memory: its descriptor has format any; use the one of the primitive descriptor");
  object_->desc = md;
  object_->engine = aengine;
  set_data_handle(handle);
}

// The old memory is released only after the new allocation has succeeded: a failed allocation changes nothing.
void memory::set_data_handle(void* handle) const {
  object();
  std::shared_ptr<void> owned;
  if (handle == DNNL_MEMORY_ALLOCATE) {
    owned = allocated(object_->desc.get_size());
    handle = owned.get();
  }
  object_->owned = std::move(owned);
  object_->handle = handle;
}

memory::desc memory::get_desc() const { return object().desc; }
engine memory::get_engine() const { return object().engine; }
void* memory::get_data_handle() const { return object().handle; }
const detail::memory_object& memory::object() const { return of(object_, "the memory"); }

void primitive_attr::set_scales_mask(int arg, int mask) {
  if (arg != DNNL_ARG_SRC && arg != DNNL_ARG_DST)
    fail(dnnl_invalid_arguments,
         "attribute scales: argument " + std::to_string(arg) + " has no scales, allowed are DNNL_ARG_SRC and DNNL_ARG_DST");
  if (mask != 0)
    fail(dnnl_unimplemented, "attribute scales: mask is " + std::to_string(mask) + ", allowed is 0: one scale per tensor");
  scales_masks_[arg] = mask;
}

}  // namespace dnnl
