// The phases of a row. A team walks over the row once per phase, block by block.
#pragma once

#include "backends/gpu/emit/chunk.h"
#include "backends/gpu/emit/exchange.h"
#include "backends/gpu/emit/next_row.h"
#include "backends/gpu/emit/rows.h"

namespace lamina::gpu {

// The parts of an emission. Each uses those before it.
struct Parts {
  explicit Parts(Emission& emission)
      : e(emission),
        values(e),
        reductions(e, values),
        columns(e),
        rows(e, columns),
        next_row(e, values, rows),
        exchange(e, reductions),
        chunk(e, values, reductions, columns) {}

  Emission& e;
  Values values;
  Reductions reductions;
  ColumnSums columns;
  Rows rows;
  NextRow next_row;
  Exchange exchange;
  Chunk chunk;
};

class RowLoops : private Part {
 public:
  explicit RowLoops(Parts& parts) : Part(parts.e), p_(parts) {}

  void emit_row();
  void emit_flat();  // without reductions: one chunk per thread, with the rows one after the other
  // One block of the row, starting at `base` if there are several, and the results of its reductions.
  void emit_block(int phase);

 private:
  void emit_phase(int phase);
  void emit_walk(int phase);  // over all blocks that the team has

  Parts& p_;
};

}  // namespace lamina::gpu
