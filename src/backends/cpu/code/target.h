// What a function is compiled for, in LLVM's words.
#pragma once

#include <string>

#include "backends/cpu/code/isa.h"
#include "backends/cpu/vector/math.h"

namespace lamina::cpu {

// On AVX-512 the machine's own name is used, so that the code is scheduled for it.
struct Target {
  std::string cpu, features;
  TargetFeatures flags;
};

// The machine is asked once in a process: each `cpuid` is a trap into the hypervisor on a virtual machine, and a description
// takes about twenty. Throws Error(invalid_arguments) as chosen_isa().
const Target& target_of(Isa isa);

}  // namespace lamina::cpu
