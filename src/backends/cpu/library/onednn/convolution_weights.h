// The gradient of weights: a sum over all images, computed in blocks of images.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu::onednn {

std::unique_ptr<const Primitive> weight_gradient(const kernel::LibraryStep& step, const PrimitiveUse& use);

}  // namespace lamina::cpu::onednn
