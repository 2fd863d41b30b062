// Runs a kernel element by element over its whole grid and checks every access. It defines what the code of a backend must
// compute, and uses none of the backends' code.
//
// The results equal those of the CPU backend bit for bit, apart from NaN payloads. Sums inside a row use 64 lanes in blocks
// of 4096 elements, which are combined in f64. Mean and variance use two walks; a row of several blocks is walked twice per
// block, and the blocks' moments are joined. Column sums use blocks of 64 rows and a binary tree. The elementary functions
// are those of kernels/math. A backend with another order of summation is compared within a tolerance where the kernel
// reduces, and bitwise elsewhere.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel_ir.h"

namespace lamina::kernel {

// The memory of one arg: the kernel may access `elements` elements of the arg's dtype, starting at `data`. A table arg needs
// none.
struct InterpretedArg {
  void* data = nullptr;
  int64_t elements = 0;
};

// Throws Error(runtime_error), which names the kernel, the arg and the position, if an access is outside its arg's memory or
// if two positions of the grid write the same element.
void interpret(const Kernel& kernel, std::span<const InterpretedArg> args);

}  // namespace lamina::kernel
