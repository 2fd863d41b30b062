// A CPU backend without a primitive library: ops that have a kernel run in it.
#pragma once

#include "backends/cpu/backend.h"

namespace lamina::testing {

inline const Backend& kernels_alone() {
  static const std::unique_ptr<const Backend> backend = cpu::make_backend(nullptr);
  return *backend;
}

}  // namespace lamina::testing
