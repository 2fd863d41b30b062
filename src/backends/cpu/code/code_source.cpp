#include "backends/cpu/code/code_source.h"

#include "backends/cpu/code/object_code.h"
#include "backends/cpu/emit/emit_kernel.h"
#include "backends/cpu/product/emit_dequantized.h"
#include "backends/cpu/product/emit_integer_groups.h"
#include "backends/cpu/product/emit_line.h"
#include "backends/cpu/product/emit_product.h"
#include "backends/cpu/product/emit_tap.h"
#include "interface/status.h"

namespace lamina::cpu {

CodeSource source_of(const kernel::Kernel& kernel, const Schedule& schedule) {
  return {.name = kernel.name,
          .structure = join(describe(schedule), "\n", kernel::print(kernel, false)),
          .emit = [&](const CodeModule& to) { emit_kernel(to.module, to.symbol, kernel, schedule, to.target); },
          // Along a row, an address is already a base and an index. Across rows it is a product.
          .reduces_strength = schedule.transposed};
}

CodeSource source_of(const ProductTile& tile) {
  return {.name = "product_tile", .structure = describe(tile), .emit = [tile](const CodeModule& to) {
            emit_product_tile(to.module, to.symbol, tile, to.target);
          }};
}

CodeSource source_of(const PanelCopy& copy) {
  return {.name = "panel_copy", .structure = describe(copy), .emit = [copy](const CodeModule& to) {
            emit_panel_copy(to.module, to.symbol, copy, to.target);
          }};
}

CodeSource source_of(const RowConversion& conversion) {
  return {.name = "row_conversion", .structure = describe(conversion), .emit = [conversion](const CodeModule& to) {
            emit_row_conversion(to.module, to.symbol, conversion, to.target);
          }};
}

CodeSource source_of(const ScaledRow& row) {
  return {.name = "scaled_row", .structure = describe(row), .emit = [row](const CodeModule& to) {
            emit_scaled_row(to.module, to.symbol, row, to.target);
          }};
}

CodeSource source_of(const DequantizedTile& tile) {
  return {.name = "dequantized_tile", .structure = describe(tile), .emit = [tile](const CodeModule& to) {
            emit_dequantized_tile(to.module, to.symbol, tile, to.target);
          }};
}

CodeSource source_of(const IntegerTile& tile) {
  return {.name = "integer_tile", .structure = describe(tile), .emit = [tile](const CodeModule& to) {
            emit_integer_tile(to.module, to.symbol, tile, to.target);
          }};
}

CodeSource source_of(const WordCopy& copy) {
  return {.name = "word_copy", .structure = describe(copy), .emit = [copy](const CodeModule& to) {
            emit_word_copy(to.module, to.symbol, copy, to.target);
          }};
}

CodeSource source_of(const LineTile& tile) {
  return {.name = "line_tile", .structure = describe(tile), .emit = [tile](const CodeModule& to) {
            emit_line_tile(to.module, to.symbol, tile, to.target);
          }};
}

CodeSource source_of(const TapTile& tile) {
  return {.name = "tap_tile", .structure = describe(tile), .emit = [tile](const CodeModule& to) {
            emit_tap_tile(to.module, to.symbol, tile, to.target);
          }};
}

}  // namespace lamina::cpu
