#include "backends/gpu/cuda/api.h"

#include "backends/gpu/shared_object.h"
#include "interface/status.h"

namespace lamina::gpu::cuda {

std::vector<std::string> names_of_library(const std::string& stem, const std::vector<std::string>& versions) {
  return gpu::names_of_library(stem, versions, {.variables = {"CUDA_HOME", "CUDA_PATH"}, .usual_folder = "/usr/local/cuda"});
}

const DriverApi* driver_api(std::string& why) {
  static const LoadedApi<DriverApi> loaded("the NVIDIA driver library", {"libcuda.so.1", "libcuda.so"},
                                           [](SharedObject& library, DriverApi& table) {
#define LAMINA_FIND(result, symbol, member, parameters) &&library.find(#symbol, table.member)
                                             return true LAMINA_CUDA_FUNCTIONS(LAMINA_FIND);
                                           });
  return loaded.table(why);
}

const NvrtcApi* nvrtc_api(std::string& why) {
  static const LoadedApi<NvrtcApi> loaded("NVRTC, the run-time compiler of CUDA 11.2 or newer",
                                          names_of_library("libnvrtc", {"13", "12", "11.2"}),
                                          [](SharedObject& library, NvrtcApi& table) {
                                            return true LAMINA_NVRTC_FUNCTIONS(LAMINA_FIND);
#undef LAMINA_FIND
                                          });
  return loaded.table(why);
}

}  // namespace lamina::gpu::cuda
