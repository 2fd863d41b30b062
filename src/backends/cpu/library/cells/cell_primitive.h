// Pools and resampling as steps of a plan.
#pragma once

#include <memory>

#include "backends/cpu/library/cells/cell_work.h"
#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu {

std::unique_ptr<const Primitive> cell_primitive(CellWork work, const PrimitiveUse& use);

}  // namespace lamina::cpu
