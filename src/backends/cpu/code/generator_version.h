// What machine code depends on besides the kernel, its schedule and its target machine.
#pragma once

#include <string>

namespace lamina::cpu {

// The versions of lamina and of LLVM, and a hash of the emitter's sources.
std::string code_generator_version();

}  // namespace lamina::cpu
