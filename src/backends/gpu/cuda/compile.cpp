#include "backends/gpu/cuda/compile.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "backends/gpu/run_time_program.h"
#include "interface/status.h"

namespace lamina::gpu::cuda {

namespace {

// The newest architecture that NVRTC supports and the device can run.
int nearest_architecture(const NvrtcApi& nvrtc, int capability) {
  int count = 0;
  check(nvrtc, nvrtc.supported_count(&count), "nvrtcGetNumSupportedArchs");
  std::vector<int> known(static_cast<size_t>(count));
  check(nvrtc, nvrtc.supported(known.data()), "nvrtcGetSupportedArchs");
  int nearest = 0;
  for (const int architecture : known) nearest = architecture <= capability ? std::max(nearest, architecture) : nearest;
  if (nearest == 0)
    throw Error(Status::runtime_error,
                join("NVRTC: compute capability ", capability, " is older than all that NVRTC supports"));
  return nearest;
}

int major_version(const NvrtcApi& nvrtc) {
  int major = 0, minor = 0;
  check(nvrtc, nvrtc.version(&major, &minor), "nvrtcVersion");
  return major;
}

}  // namespace

bool has_instructions_of_four_warps(const NvrtcApi& nvrtc, int capability) {
  return capability == 90 && nearest_architecture(nvrtc, capability) == 90 && major_version(nvrtc) >= 12;
}

int most_groups_of_cluster(const NvrtcApi& nvrtc, int capability) {
  return capability >= 90 && nearest_architecture(nvrtc, capability) >= 90 && major_version(nvrtc) >= 12 ? 8 : 1;
}

Image compile(const NvrtcApi& nvrtc, const std::string& name, const std::string& text, int capability, const CodeCache* cache) {
  int major = 0, minor = 0;
  check(nvrtc, nvrtc.version(&major, &minor), "nvrtcVersion");
  const int architecture = nearest_architecture(nvrtc, capability);
  const bool native = architecture == capability;
  // No contraction, no flushing to zero, exact division and square root: FMA only where the program requests it.
  // The target sm_90a has instructions that no other capability has.
  const char* const own = has_instructions_of_four_warps(nvrtc, capability) ? "a" : "";
  const std::vector<std::string> options = {join("--gpu-architecture=", native ? "sm_" : "compute_", architecture, own),
                                            "--std=c++17",
                                            "--fmad=false",
                                            "--ftz=false",
                                            "--prec-div=true",
                                            "--prec-sqrt=true",
                                            "--ptxas-options=-v"};
  std::string key = join("CUDA image for ", capability, ", NVRTC ", major, ".", minor);
  for (const std::string& option : options) key += " " + option;
  key += "\n" + text;
  if (cache != nullptr) {
    if (std::optional<std::string> stored = cache->find(key)) return {*std::move(stored), "", true};
  }
  RunTimeProgram<NvrtcApi> program(nvrtc, name + ".cu", text);
  program.compile(name, options);
  Image image{native ? program.read(nvrtc.cubin_size, nvrtc.cubin) : program.read(nvrtc.ptx_size, nvrtc.ptx), program.log(),
              false};
  if (cache != nullptr) cache->store(key, image.data);
  return image;
}

}  // namespace lamina::gpu::cuda
