// Compiled matrix products in programs that are written and read.
#include "backends/cpu/dispatch/product_dispatch.h"

#include <utility>

#include "backends/cpu/dispatch/program_checks.h"

namespace lamina::cpu {

void ProductCode::PanelCode::write(ProgramWriter& to) const {
  to.write(columns);
  to.write(tiles.size());
  for (const CompiledCode& tile : tiles) cpu::write(to, tile);
  cpu::write(to, copy);
  cpu::write(to, conversion);
}

ProductCode::PanelCode ProductCode::PanelCode::read(ProgramReader& from) {
  PanelCode code;
  from.read(code.columns);
  const size_t tiles = from.read_count();
  for (size_t rows = 0; rows < tiles; ++rows) code.tiles.push_back(read_code(from));
  code.copy = read_code(from);
  code.conversion = read_code(from);
  return code;
}

void ProductCode::write(ProgramWriter& to) const {
  for (const PanelCode* const panels : {&whole, &last}) panels->write(to);
  for (const MatrixCopy* const copy : {&copy_src, &copy_bias, &copy_in, &copy_out}) copy->write(to);
  copy_weights.write(to);
  scale_out.write(to);
}

ProductCode ProductCode::read(ProgramReader& from) {
  ProductCode code;
  for (PanelCode* const panels : {&code.whole, &code.last}) *panels = PanelCode::read(from);
  for (MatrixCopy* const copy : {&code.copy_src, &code.copy_bias, &code.copy_in, &code.copy_out})
    *copy = MatrixCopy::read(from);
  code.copy_weights = WeightsCopy::read(from);
  code.scale_out = ScaledCopy::read(from);
  return code;
}

void ProductDispatch::write(ProgramWriter& to) const {
  to.write(program_);
  code_.write(to);
}

std::unique_ptr<const ProductDispatch> ProductDispatch::read(ProgramReader& from, const RowSource* rows,
                                                             const PanelMaker* panels) {
  auto program = from.get<ProductProgram>();
  check(program);
  ProductCode code = ProductCode::read(from);
  const auto has_tiles = [&](const ProductCode::PanelCode& of_width) {
    return of_width.tiles.size() == static_cast<size_t>(program.rows) + 1 && of_width.columns > 0;
  };
  const kernel::MatmulStack& of = program.matrices;
  const bool needs_whole = of.n >= program.columns || panels != nullptr;
  const bool needs_last = of.n % program.columns != 0 && panels == nullptr;
  require((!needs_whole || has_tiles(code.whole)) && (!needs_last || has_tiles(code.last)), "the tiles of a product");
  require(rows == nullptr || program.copies_rows || (rows->part() > 0 && program.k_block % rows->part() == 0),
          "the parts of a row");
  return std::make_unique<const ProductDispatch>(std::move(program), std::move(code), panels, rows);
}

}  // namespace lamina::cpu
