#include "backends/cpu/emit/tiles.h"

#include <algorithm>

namespace lamina::cpu {

Row Tiles::begin_row(const Tile& tile, llvm::Value* place) {
  Row row = p_.rows.begin(b_.CreateAdd(tile.first, place), place, tile.frame);
  row.computes = tile.computes;
  tile.store->restore(row);
  return row;
}

void Tiles::for_rows(llvm::Value* from, llvm::Value* to, int step, const std::function<void(llvm::Value*)>& body) {
  if (schedule_.rows_per_tile == 1 || e_.across_rows())
    body(from);
  else
    e_.loop(from, to, i64(step), body);
}

void Tiles::emit(const Tile& tile) {
  const int last = plan_.last();
  for (int phase = 0; phase < last; ++phase) {
    const bool next_is_rare = phase + 1 < last && plan_.may_be_skipped(phase + 1);
    for_rows(i64(0), tile.count, 1, [&](llvm::Value* place) {
      Row row = begin_row(tile, place);
      if (phase == 0) p_.prefetch.prefetch_ends(row);
      row_phases_.emit({&row}, phase);
      if (next_is_rare) row_phases_.second_walk(row, phase + 1);
      tile.store->save(row);
    });
    if (next_is_rare) ++phase;
  }
  emit_last_phase(tile);
}

void Tiles::emit_last_phase(const Tile& tile) {
  const int together = schedule_.rows_together;
  llvm::Value* const grouped = together == 1 ? tile.count : b_.CreateAnd(tile.count, i64(-together));
  const auto all_rows = [&](llvm::Value* strip) {
    const auto emit_rows = [&](llvm::Value* from, llvm::Value* to, int rows) {
      for_rows(from, to, rows, [&](llvm::Value* place) { emit_last_phase_of(tile, place, rows, strip); });
    };
    emit_rows(i64(0), grouped, together);
    if (together > 1) emit_rows(grouped, tile.count, 1);
  };
  if (schedule_.strip == 0)
    all_rows(nullptr);
  else
    emit_strips(tile, all_rows);
}

void Tiles::emit_last_phase_of(const Tile& tile, llvm::Value* place, int rows, llvm::Value* strip) {
  const int last = plan_.last();
  std::vector<Row> group;
  for (int r = 0; r < rows; ++r) {
    group.push_back(begin_row(tile, b_.CreateAdd(place, i64(r))));
    if (last == 0) p_.prefetch.prefetch_ends(group.back());
  }
  group.front().begins_columns = b_.CreateICmpEQ(b_.CreateAdd(tile.first, place), tile.block_begin);
  std::vector<Row*> all;
  for (Row& row : group) all.push_back(&row);
  row_phases_.emit(all, last, strip);
}

// Row values are computed once, not in each strip.
void Tiles::emit_strips(const Tile& tile, const std::function<void(llvm::Value*)>& all_rows) {
  const auto compute_row_values = [&](llvm::Value* place) {
    Row row = begin_row(tile, place);
    p_.values.compute_row_values(row, plan_.last());
    tile.store->save(row);
  };
  // for a split row, the last sum's step computes them
  if (!schedule_.split) for_rows(i64(0), tile.count, 1, compute_row_values);
  e_.loop(first_column(e_), past_columns(e_), i64(schedule_.strip), all_rows);
}

}  // namespace lamina::cpu
