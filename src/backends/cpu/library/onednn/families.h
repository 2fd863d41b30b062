// What runs through oneDNN, a family a file.
#pragma once

#include <vector>

#include "backends/cpu/library/heavy_ops.h"

namespace lamina::cpu::onednn {

std::vector<HeavyOp> matmul_ops();
std::vector<HeavyOp> convolution_ops();

}  // namespace lamina::cpu::onednn
