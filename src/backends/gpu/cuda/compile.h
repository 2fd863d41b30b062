// CUDA C++ to machine code through NVRTC, or from the cache on disk.
#pragma once

#include <string>

#include "backends/cache/code_cache.h"
#include "backends/gpu/cuda/api.h"

namespace lamina::gpu::cuda {

struct Image {
  std::string data;  // a cubin, or PTX if NVRTC does not support the device yet
  std::string log;   // the compiler's output: registers and spills of each kernel
  bool from_cache = false;
};

// Whether programs for this device may use instructions of four warps (wgmma), which only compute capability 9.0 has.
bool has_instructions_of_four_warps(const NvrtcApi& nvrtc, int capability);
// The most work-groups of a cluster on every device of this capability; 1 before 9.0.
int most_groups_of_cluster(const NvrtcApi& nvrtc, int capability);

// Compiles for compute capability `capability` (90: sm_90). The image is searched and stored in `cache`, if it is not null.
// Throws Error(runtime_error) with the compiler's log.
Image compile(const NvrtcApi& nvrtc, const std::string& name, const std::string& text, int capability,
              const CodeCache* cache = nullptr);

}  // namespace lamina::gpu::cuda
