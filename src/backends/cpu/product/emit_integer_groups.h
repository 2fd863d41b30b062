#pragma once

#include <string>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/product/dequantized_code.h"
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

void emit_integer_tile(llvm::Module& module, const std::string& symbol, const IntegerTile& tile, const Instructions& target);

}  // namespace lamina::cpu
