// What machine code is generated from: a kernel with its schedule, or another function that a module of the backend emits.
#pragma once

#include <functional>
#include <string>

#include "backends/cpu/product/dequantized_code.h"
#include "backends/cpu/product/line_code.h"
#include "backends/cpu/product/product_code.h"
#include "backends/cpu/product/tap_code.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

struct CodeModule;  // object_code.h

struct CodeSource {
  std::string name;                                // readable, part of the symbol
  std::string structure;                           // determines the code for given instructions: the key of code caches
  std::function<void(const CodeModule& to)> emit;  // adds the function
  // Replaces products in addresses by sums. Without it, code generation takes two thirds of the time.
  bool reduces_strength = false;
};

// Emits from references: the kernel and the schedule must outlive the result. See emit_kernel.h for the signature.
CodeSource source_of(const kernel::Kernel& kernel, const Schedule& schedule);

// The functions of matrix products (product_code.h, dequantized_code.h) and of convolutions (line_code.h).
CodeSource source_of(const ProductTile& tile);
CodeSource source_of(const PanelCopy& copy);
CodeSource source_of(const RowConversion& conversion);
CodeSource source_of(const ScaledRow& row);
CodeSource source_of(const DequantizedTile& tile);
CodeSource source_of(const IntegerTile& tile);
CodeSource source_of(const WordCopy& copy);
CodeSource source_of(const LineTile& tile);
CodeSource source_of(const TapTile& tile);

}  // namespace lamina::cpu
