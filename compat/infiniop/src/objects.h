// The objects behind infiniop's handles, and the conversion of errors to a status and a sentence.
#pragma once

#include <string>
#include <vector>

#include "graph/layer_norm.hpp"
#include "handle_table.h"
#include "infiniop.h"

namespace lamina::infiniop {

struct Refusal {
  infiniStatus_t status;
  std::string sentence;
};
[[noreturn]] inline void refuse(infiniStatus_t status, std::string sentence) { throw Refusal{status, std::move(sentence)}; }

// Runs `body` and converts an exception to a status and the sentence of lamina_last_error().
template <typename Body>
infiniStatus_t guarded(const char* function, Body&& body) noexcept {
  try {
    body();
    return INFINI_STATUS_SUCCESS;
  } catch (const Refusal& refusal) {
    lamina_set_last_error((std::string(function) + ": " + refusal.sentence).c_str());
    return refusal.status;
  } catch (const std::exception& failure) {  // an error that infiniop should have detected itself, or out of memory
    lamina_set_last_error(failure.what());
    return INFINI_STATUS_INTERNAL_ERROR;
  } catch (...) {
    lamina_set_last_error("unknown exception: this is a bug in lamina");
    return INFINI_STATUS_INTERNAL_ERROR;
  }
}

struct Handle {
  infiniDevice_t device;
  int device_id;
};

struct TensorDescriptor {
  std::vector<int64_t> shape, strides;
  infiniDtype_t dtype;
};

struct Stream {
  lamina::stream stream;
};

}  // namespace lamina::infiniop

struct InfiniopHandle : lamina::HandleSlot<const lamina::infiniop::Handle> {};
struct InfiniopTensorDescriptor : lamina::HandleSlot<const lamina::infiniop::TensorDescriptor> {};
struct InfinirtStream : lamina::HandleSlot<lamina::infiniop::Stream> {};

namespace lamina::infiniop {

inline void require(const void* pointer, const char* name) {
  if (pointer == nullptr) refuse(INFINI_STATUS_BAD_PARAM, std::string(name) + " is null");
}

// The handle's content. Rejects null and destroyed handles.
template <typename Object>
auto& content_of(const Object* object, const char* name) {
  require(object, name);
  if (!HandleTable<Object>::is_alive(object)) refuse(INFINI_STATUS_BAD_PARAM, std::string(name) + " is already destroyed");
  return *object->content;
}

template <typename Object>
void destroy(Object* object, const char* name) {
  if (object == nullptr || HandleTable<Object>::instance().destroy(object)) return;
  refuse(INFINI_STATUS_BAD_PARAM, std::string(name) + " is already destroyed");
}

}  // namespace lamina::infiniop
