// Tiles: rows that complete a phase before any of them starts the next one, so that the chain of dependent operations at the
// end of a reduction (folding the lanes, a division, a square root) overlaps with the next row's work.
#pragma once

#include <functional>
#include <vector>

#include "backends/cpu/emit/row_phases.h"

namespace lamina::cpu {

struct Tile {
  llvm::Value *first, *count;  // rows; across rows a group counts as one
  llvm::Value* block_begin;    // the row that starts the column sums; the others add to them
  RowStore* store;
  Frame frame = {};                             // for each row
  const std::vector<bool>* computes = nullptr;  // for each row
};

class Tiles : private Part {
 public:
  Tiles(Parts& parts, RowPhases& row_phases) : Part(parts.e), p_(parts), row_phases_(row_phases) {}

  void emit(const Tile& tile);
  void emit_last_phase(const Tile& tile);
  // Includes the row values that are known so far.
  Row begin_row(const Tile& tile, llvm::Value* place);
  // A loop over rows of a tile, by index. Emits no loop if a tile is one row.
  void for_rows(llvm::Value* from, llvm::Value* to, int step, const std::function<void(llvm::Value*)>& body);

 private:
  void emit_last_phase_of(const Tile& tile, llvm::Value* place, int rows, llvm::Value* strip);
  void emit_strips(const Tile& tile, const std::function<void(llvm::Value*)>& all_rows);

  Parts& p_;
  RowPhases& row_phases_;
};

}  // namespace lamina::cpu
