// Tensors in which two elements share an address. oneDNN only supports this with strides of 0.
#pragma once

#include <string_view>

#include "interface/logical_tensor.h"
#include "interface/op.h"

namespace lamina::cpu::onednn {

bool are_apart(const Dims& extents, const Dims& strides);

// `what`: the port. Throws Error(unimplemented) if the strides make elements overlap.
void require_apart(const Op& op, std::string_view what, const Dims& extents, const Dims& strides);

}  // namespace lamina::cpu::onednn
