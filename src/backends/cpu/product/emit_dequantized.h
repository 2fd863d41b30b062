// The functions of dequantized_code.h as LLVM IR.
#pragma once

#include <string>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/product/dequantized_code.h"
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

void emit_dequantized_tile(llvm::Module& module, const std::string& symbol, const DequantizedTile& tile,
                           const Instructions& target);
void emit_word_copy(llvm::Module& module, const std::string& symbol, const WordCopy& copy, const Instructions& target);

}  // namespace lamina::cpu
