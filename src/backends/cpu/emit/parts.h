// The parts of an emission. Each uses those before it.
#pragma once

#include "backends/cpu/emit/column_sums.h"
#include "backends/cpu/emit/in_register_transpose.h"
#include "backends/cpu/emit/line_streams.h"
#include "backends/cpu/emit/memory.h"
#include "backends/cpu/emit/prefetch.h"
#include "backends/cpu/emit/reductions.h"
#include "backends/cpu/emit/rows_in_flight.h"
#include "backends/cpu/emit/values.h"

namespace lamina::cpu {

struct Parts {
  explicit Parts(Emission& emission)
      : e(emission),
        memory(e),
        values(e, memory),
        rows(e),
        transpose(e, memory),
        reductions(e, memory, transpose, values),
        columns(e, transpose),
        streams(e, memory),
        prefetch(e, transpose) {}

  Emission& e;
  Memory memory;
  Values values;
  Rows rows;
  InRegisterTranspose transpose;
  Reductions reductions;
  ColumnSums columns;
  LineStreams streams;
  Prefetch prefetch;
};

}  // namespace lamina::cpu
