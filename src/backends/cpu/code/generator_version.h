// What machine code depends on besides the kernel, its schedule and the machine it is for.
#pragma once

#include <string>

namespace lamina::cpu {

// The versions of lamina and of LLVM, and the sources of the emitter.
std::string code_generator_version();

}  // namespace lamina::cpu
