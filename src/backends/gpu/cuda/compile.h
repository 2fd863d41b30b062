// CUDA C++ to machine code through NVRTC, or from the cache on disk.
#pragma once

#include <string>

#include "backends/cache/code_cache.h"
#include "backends/gpu/cuda/api.h"

namespace lamina::gpu::cuda {

struct Image {
  std::string data;  // a cubin, or PTX where NVRTC does not know the device yet
  std::string log;   // what the compiler said; registers and spills of each kernel
  bool from_cache = false;
};

// For compute capability `capability` (90: sm_90). An image is looked for in `cache`, and kept there; null: it is compiled.
// Throws Error(runtime_error) with the compiler's log.
Image compile(const NvrtcApi& nvrtc, const std::string& name, const std::string& text, int capability,
              const CodeCache* cache = nullptr);

}  // namespace lamina::gpu::cuda
