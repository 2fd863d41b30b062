#include "backends/gpu/hip/compile.h"

#include "backends/gpu/run_time_program.h"
#include "backends/gpu/shared_object.h"

namespace lamina::gpu::hip {

const HiprtcApi* hiprtc_api(std::string& why) {
  static const LoadedApi<HiprtcApi> loaded(
      "hipRTC, the run-time compiler of ROCm",
      names_of_library("libhiprtc", {"7", "6", "5"}, {.variables = {"ROCM_PATH", "HIP_PATH"}, .usual_folder = "/opt/rocm"}),
      [](SharedObject& library, HiprtcApi& table) {
#define LAMINA_FIND(result, symbol, member, parameters) &&library.find(#symbol, table.member)
        return true LAMINA_HIPRTC_FUNCTIONS(LAMINA_FIND);
#undef LAMINA_FIND
      });
  return loaded.table(why);
}

std::string compile(const HiprtcApi& hiprtc, const std::string& symbol, const std::string& text,
                    const std::string& architecture) {
  RunTimeProgram<HiprtcApi> program(hiprtc, symbol + ".hip", text);
  // No contraction, exact division and square root, as for CUDA; denormals are kept by default.
  program.compile(symbol, {"--offload-arch=" + architecture, "-std=c++17", "-ffp-contract=off",
                           "-fhip-fp32-correctly-rounded-divide-sqrt"});
  return program.read(hiprtc.code_size, hiprtc.code);
}

}  // namespace lamina::gpu::hip
