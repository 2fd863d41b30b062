// The functions of matrix products (product_code.h) as LLVM IR.
#pragma once

#include <string>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/product/product_code.h"
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

void emit_product_tile(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target);
// If `tile` reads weights along k; emit_product_tile calls it.
void emit_tile_along_k(llvm::Module& module, const std::string& symbol, const ProductTile& tile, const Instructions& target);
void emit_panel_copy(llvm::Module& module, const std::string& symbol, const PanelCopy& copy, const Instructions& target);
void emit_row_conversion(llvm::Module& module, const std::string& symbol, const RowConversion& conversion,
                         const Instructions& target);
void emit_scaled_row(llvm::Module& module, const std::string& symbol, const ScaledRow& row, const Instructions& target);

}  // namespace lamina::cpu
