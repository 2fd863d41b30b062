// Runs a kernel element by element over its whole grid and watches every access: what a backend's code must do, without any of
// its means.
//
// Results are those of the CPU backend, bit for bit (NaN payloads apart): sums inside a row over 64 lanes in blocks of 4096
// combined in f64; mean and variance in two walks, over each block of a row of several, whose moments are then joined; column
// sums in blocks of 64 rows and a binary tree; the elementary functions of kernels/dialect. A backend with another order of
// summation is compared within a tolerance where the kernel reduces, and bitwise where it does not.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel_ir.h"

namespace lamina::kernel {

// Memory behind one arg: `elements` elements of the arg's dtype may be touched, from `data` on. A table arg needs none.
struct InterpretedArg {
  void* data = nullptr;
  int64_t elements = 0;
};

// Throws Error(runtime_error) that names the kernel, the arg and the place when an access lies outside its arg's memory, or
// when an element is written from two places of the grid.
void interpret(const Kernel& kernel, std::span<const InterpretedArg> args);

}  // namespace lamina::kernel
