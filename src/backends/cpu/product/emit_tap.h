// The function of tap_code.h as LLVM IR.
#pragma once

#include <string>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/product/tap_code.h"
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

void emit_tap_tile(llvm::Module& module, const std::string& symbol, const TapTile& tile, const Instructions& target);

}  // namespace lamina::cpu
