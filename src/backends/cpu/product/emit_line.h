// The function of line_code.h as LLVM IR.
#pragma once

#include <string>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/product/line_code.h"
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

void emit_line_tile(llvm::Module& module, const std::string& symbol, const LineTile& tile, const Instructions& target);

}  // namespace lamina::cpu
