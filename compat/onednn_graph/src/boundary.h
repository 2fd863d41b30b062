// The edge of the C interface: nothing that is thrown inside passes it.
#pragma once

#include <oneapi/dnnl/dnnl_common_types.h>

#include <exception>
#include <new>
#include <utility>

#include "refusals.h"

namespace onednn_graph {

// What `body` returns; out_of_memory or runtime_error for what it throws.
template <typename Body>
dnnl_status_t caught(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return dnnl_out_of_memory;
  } catch (...) {
    return dnnl_runtime_error;
  }
}

// The same; a refusal is told, by the name of the function that this is called in.
template <typename Body>
dnnl_status_t guarded(Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
  if (!refusals_are_told()) return caught(std::forward<Body>(body));
  forget_reason();
  const dnnl_status_t status = caught(std::forward<Body>(body));
  if (status != dnnl_success) tell_refusal(function, status);
  return status;
}

template <typename... Pointers>
bool any_null(const Pointers*... pointers) {
  return ((pointers == nullptr) || ...);
}

}  // namespace onednn_graph
