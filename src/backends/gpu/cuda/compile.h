// CUDA C++ to machine code through NVRTC, with a cache on disk.
#pragma once

#include <string>

#include "backends/gpu/cuda/api.h"

namespace lamina::gpu::cuda {

struct Image {
  std::string data;  // a cubin, or PTX where NVRTC does not know the device yet
  std::string log;   // what the compiler said; registers and spills of each kernel
  bool from_cache = false;
};

// For compute capability `capability` (90: sm_90). With LAMINA_CACHE_DIR set, images are kept there as NAME-HASH.cubin, the
// hash being of the text, the capability and NVRTC's version. Throws Error(runtime_error) with the compiler's log.
Image compile(const NvrtcApi& nvrtc, const std::string& name, const std::string& text, int capability);

}  // namespace lamina::gpu::cuda
