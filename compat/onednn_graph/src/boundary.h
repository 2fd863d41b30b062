// The edge of the C interface: nothing that is thrown inside passes it.
#pragma once

#include <oneapi/dnnl/dnnl_common_types.h>

#include <exception>
#include <new>
#include <utility>

namespace onednn_graph {

// What `body` returns; out_of_memory or runtime_error for what it throws.
template <typename Body>
dnnl_status_t guarded(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return dnnl_out_of_memory;
  } catch (...) {
    return dnnl_runtime_error;
  }
}

template <typename... Pointers>
bool any_null(const Pointers*... pointers) {
  return ((pointers == nullptr) || ...);
}

}  // namespace onednn_graph
