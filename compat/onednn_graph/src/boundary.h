// The boundary of the C interface, which no exception crosses.
#pragma once

#include <oneapi/dnnl/dnnl_common_types.h>

#include <exception>
#include <new>
#include <utility>

#include "refusals.h"

namespace onednn_graph {

// Returns the result of `body`, or out_of_memory or runtime_error if it throws.
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

// The same, and reports an error with the name of the calling function.
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
