#include "backends/gpu/cuda/api.h"

#include <cstdlib>

#include "backends/gpu/shared_object.h"
#include "interface/status.h"

namespace lamina::gpu::cuda {

std::vector<std::string> names_of_library(const std::string& stem, const std::vector<std::string>& versions) {
  std::vector<std::string> names;
  for (const std::string& version : versions) names.push_back(stem + ".so." + version);
  names.push_back(stem + ".so");
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* const folder = std::getenv(variable)) folders.emplace_back(folder);
  }
  folders.emplace_back("/usr/local/cuda");
  for (const std::string& folder : folders) {
    for (const char* sub : {"/lib64/", "/lib/"}) names.push_back(folder + sub + stem + ".so");
  }
  return names;
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
