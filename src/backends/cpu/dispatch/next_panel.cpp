#include "backends/cpu/dispatch/next_panel.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/program/tuning.h"

namespace lamina::cpu {

void NextPanel::share(int64_t tiles, int64_t count, int64_t elements, ProductStrides& strides) {
  strides.copied_rows = rows_of_tile;
  strides.copied_steps = count / rows_of_tile;
  strides.copied_row = from_row;
  strides.copied_from = from;
  strides.copied_to = to;
  const int64_t rows = tiles * rows_of_tile;
  copied += rows;
  from += rows * elements * from_row;
  to += rows * to_row;
}

std::optional<PanelPlace> place_after(PanelPlace place, const ProductProgram& program, bool blocks_first, int64_t first_column,
                                      int64_t end_column, int64_t end_k) {
  if (blocks_first) {
    place.column += program.columns;
    if (place.column >= end_column) place = {place.first_k + program.k_block, first_column};
  } else {
    place.first_k += program.k_block;
    if (place.first_k >= end_k) place = {0, place.column + program.columns};
  }
  if (place.first_k >= end_k || place.column >= end_column) return std::nullopt;
  return place;
}

int64_t prefetched_for_entry(int64_t row_bytes, int64_t tiles) {
  if (tiles > row_bytes) return 0;
  const auto share = static_cast<uint64_t>(parts(row_bytes, tiles));
  return std::min(static_cast<int64_t>(std::bit_ceil(share)), tuning::kLine);
}

}  // namespace lamina::cpu
