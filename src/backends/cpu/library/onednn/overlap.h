// Tensors of which two elements lie in one place: oneDNN describes none, but by a stride of 0.
#pragma once

#include <string_view>

#include "interface/logical_tensor.h"
#include "interface/op.h"

namespace lamina::cpu::onednn {

// `what`: the port. Throws Error(unimplemented) for strides by which elements overlap.
void require_apart(const Op& op, std::string_view what, const Dims& extents, const Dims& strides);

}  // namespace lamina::cpu::onednn
