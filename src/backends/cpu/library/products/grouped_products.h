// GroupedMatMul by generated code (dispatch/grouped_step.h).
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu {

std::unique_ptr<const Primitive> grouped_product(const kernel::LibraryStep& step, const PrimitiveUse& use);

}  // namespace lamina::cpu
