// Library ops of types that the library has no fast code for on this machine: as f32, with a copy of each tensor.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu {

// Runs `step`, whose tensors of bf16 and f16 are converted, by what `compile` makes of the same step in f32.
using CompileStep = std::unique_ptr<const Primitive> (*)(const kernel::LibraryStep& step, const PrimitiveUse& use);
std::unique_ptr<const Primitive> widened(const kernel::LibraryStep& step, const PrimitiveUse& use, CompileStep compile);

}  // namespace lamina::cpu
