// Steps of primitive libraries on the CPU (backends/library.h).
#pragma once

#include "backends/cpu/dispatch/primitive.h"
#include "backends/library.h"

namespace lamina::cpu {

struct Machine;
using PrimitiveLibrary = lamina::PrimitiveLibrary<const Primitive, Machine>;
using PrimitiveUse = PrimitiveLibrary::Use;

}  // namespace lamina::cpu
