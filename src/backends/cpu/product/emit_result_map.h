// The code of a map of results (result_map.h).
#pragma once

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/product/result_map.h"

namespace lamina::cpu {

// The value that is stored for an element, or for each lane of a vector.
llvm::Value* emit_result_map(llvm::IRBuilder<>& b, const ResultMap& map, llvm::Value* element);

}  // namespace lamina::cpu
