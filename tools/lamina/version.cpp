#include "lamina/version.h"

#include "interface/status.h"
#include "lamina/load.h"

namespace lamina::driver {

std::string version_text() {
  std::string backends;
  for (const std::string& engine : engine_names()) backends += join(backends.empty() ? "" : ", ", engine);
  return join("lamina ", LAMINA_VERSION, "\nLLVM ", LAMINA_LLVM_VERSION, "\nbackends: ", backends);
}

}  // namespace lamina::driver
