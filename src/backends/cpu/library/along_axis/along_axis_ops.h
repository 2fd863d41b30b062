// TopK, CumSum, CumProd and linear recurrences, by lamina's own loops.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu {

std::unique_ptr<const Primitive> compile_top_k(const kernel::LibraryStep& step, const PrimitiveUse& use);
std::unique_ptr<const Primitive> compile_cum_sum(const kernel::LibraryStep& step, const PrimitiveUse& use);
std::unique_ptr<const Primitive> compile_cum_prod(const kernel::LibraryStep& step, const PrimitiveUse& use);
std::unique_ptr<const Primitive> compile_recurrence(const kernel::LibraryStep& step, const PrimitiveUse& use);

}  // namespace lamina::cpu
