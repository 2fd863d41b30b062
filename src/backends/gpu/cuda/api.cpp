#include "backends/gpu/cuda/api.h"

#include "backends/gpu/shared_object.h"
#include "interface/status.h"

namespace lamina::gpu::cuda {

std::vector<std::string> names_of_library(const std::string& stem, const std::vector<std::string>& versions) {
  return gpu::names_of_library(stem, versions, {.variables = {"CUDA_HOME", "CUDA_PATH"}, .usual_folder = "/usr/local/cuda"});
}

const DriverApi* driver_api(std::string& why) {
  static std::string fault;
  static const DriverApi* const loaded = []() -> const DriverApi* {
    static SharedObject library({"libcuda.so.1", "libcuda.so"});
    static DriverApi table;
    bool complete = library.is_open();
#define LAMINA_FIND(result, symbol, member, parameters) complete = complete && library.find(#symbol, table.member);
    LAMINA_CUDA_FUNCTIONS(LAMINA_FIND)
    if (!complete) fault = join("the NVIDIA driver library: ", library.error());
    return complete ? &table : nullptr;
  }();
  why = fault;
  return loaded;
}

const NvrtcApi* nvrtc_api(std::string& why) {
  static std::string fault;
  static const NvrtcApi* const loaded = []() -> const NvrtcApi* {
    static SharedObject library(names_of_library("libnvrtc", {"13", "12", "11.2"}));
    static NvrtcApi table;
    bool complete = library.is_open();
    LAMINA_NVRTC_FUNCTIONS(LAMINA_FIND)
#undef LAMINA_FIND
    if (!complete) fault = join("NVRTC, the run-time compiler of CUDA 11.2 or newer: ", library.error());
    return complete ? &table : nullptr;
  }();
  why = fault;
  return loaded;
}

}  // namespace lamina::gpu::cuda
