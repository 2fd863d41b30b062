// The gradient of Gather, as a step of a plan.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"
#include "interface/op_schema.h"

namespace lamina::cpu {

std::unique_ptr<const Primitive> scatter_add(const kernel::LibraryStep& step, const PrimitiveUse& use);

// A view of the step through its schema.
OpView indexed_view(const kernel::LibraryStep& step);

}  // namespace lamina::cpu
