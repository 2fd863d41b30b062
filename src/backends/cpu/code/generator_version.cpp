#include "backends/cpu/code/generator_version.h"

#include "backends/cpu/llvm/headers.h"
#include "code_version.h"  // generated: cmake/code_version.cmake

namespace lamina::cpu {

std::string code_generator_version() {
  return "lamina " LAMINA_VERSION ", emitter " LAMINA_EMITTER_HASH ", LLVM " LLVM_VERSION_STRING;
}

}  // namespace lamina::cpu
