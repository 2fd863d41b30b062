#include "backends/gpu/cuda/compile.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "interface/status.h"

namespace lamina::gpu::cuda {

namespace {

void check(const NvrtcApi& nvrtc, nvrtcResult result, const char* function) {
  if (result != 0) throw Error(Status::runtime_error, join("NVRTC: ", function, " failed: ", nvrtc.error_string(result)));
}

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

class Program {
 public:
  Program(const NvrtcApi& nvrtc, const std::string& name, const std::string& text) : nvrtc_(nvrtc) {
    check(nvrtc, nvrtc.create_program(&program_, text.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr),
          "nvrtcCreateProgram");
  }
  ~Program() { nvrtc_.destroy_program(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void compile(const std::string& name, const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    const nvrtcResult result = nvrtc_.compile_program(program_, static_cast<int>(pointers.size()), pointers.data());
    if (result != 0)
      throw Error(Status::runtime_error,
                  join("bug in lamina: NVRTC does not compile ", name, ": ", nvrtc_.error_string(result), "\n", log()));
  }
  std::string log() const { return read(nvrtc_.log_size, nvrtc_.log); }
  std::string cubin() const { return read(nvrtc_.cubin_size, nvrtc_.cubin); }
  std::string ptx() const { return read(nvrtc_.ptx_size, nvrtc_.ptx); }

 private:
  std::string read(nvrtcResult (*size_of)(nvrtcProgram, size_t*), nvrtcResult (*text_of)(nvrtcProgram, char*)) const {
    size_t size = 0;
    check(nvrtc_, size_of(program_, &size), "a query of a size");
    std::string text(size, '\0');
    check(nvrtc_, text_of(program_, text.data()), "a query");
    return text;
  }
  const NvrtcApi& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

Image compile(const NvrtcApi& nvrtc, const std::string& name, const std::string& text, int capability, const CodeCache* cache) {
  int major = 0, minor = 0;
  check(nvrtc, nvrtc.version(&major, &minor), "nvrtcVersion");
  const int architecture = nearest_architecture(nvrtc, capability);
  const bool native = architecture == capability;
  // No contraction, no flushing to zero, exact division and square root: FMA only where the program requests it.
  const std::vector<std::string> options = {join("--gpu-architecture=", native ? "sm_" : "compute_", architecture),
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
  Program program(nvrtc, name, text);
  program.compile(name, options);
  Image image{native ? program.cubin() : program.ptx(), program.log(), false};
  if (cache != nullptr) cache->store(key, image.data);
  return image;
}

}  // namespace lamina::gpu::cuda
