// The schedule along rows: a lane is an element. Runs tile after tile, with short rows in batches.
#include <optional>

#include "backends/cpu/emit/batch.h"
#include "backends/cpu/emit/schedules.h"
#include "backends/cpu/emit/tiles.h"
#include "backends/cpu/schedule/tiles.h"

namespace lamina::cpu {

void emit_along_rows(Emission& e) {
  const int rows = e.schedule.rows_per_tile;
  Parts parts(e);
  RowPhases row_phases(parts);
  Tiles tiles(parts, row_phases);
  std::optional<Batches> batches;
  if (rows > 1 && batches_rows(e.kernel)) batches.emplace(parts, row_phases, tiles);
  e.loop(e.row_begin, e.row_end, e.i64(rows), [&](llvm::Value* first) {
    llvm::Value* const left = e.b.CreateSub(e.row_end, first);
    llvm::Value* const count = rows == 1 ? e.i64(1) : e.b.CreateSelect(e.b.CreateICmpSLT(left, e.i64(rows)), left, e.i64(rows));
    RowStore store(e);
    const Tile tile{first, count, e.row_begin, &store};
    if (batches)
      batches->emit(tile);
    else
      tiles.emit(tile);
  });
  parts.streams.end();
}

}  // namespace lamina::cpu
