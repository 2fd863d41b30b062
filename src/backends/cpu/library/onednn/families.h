// The ops that run through oneDNN, one family per file.
#pragma once

#include <vector>

#include "backends/cpu/library/library_ops.h"

namespace lamina::cpu::onednn {

std::vector<LibraryOp> matmul_ops();
std::vector<LibraryOp> convolution_ops();

}  // namespace lamina::cpu::onednn
