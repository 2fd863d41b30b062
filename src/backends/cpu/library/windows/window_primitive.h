// Pools and resampling as steps of a plan.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"
#include "backends/cpu/library/windows/window_work.h"

namespace lamina::cpu {

std::unique_ptr<const Primitive> window_primitive(WindowWork work, const PrimitiveUse& use);

}  // namespace lamina::cpu
