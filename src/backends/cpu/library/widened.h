// Library ops in types for which the library has no fast code on this machine. They run as f32, with a copy of each tensor.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu {

// Runs `step`, whose bf16 and f16 tensors are converted, by the primitive that `compile` returns for the same step in f32.
using CompileStep = std::unique_ptr<const Primitive> (*)(const kernel::LibraryStep& step, const PrimitiveUse& use);
std::unique_ptr<const Primitive> widened(const kernel::LibraryStep& step, const PrimitiveUse& use, CompileStep compile);

}  // namespace lamina::cpu
