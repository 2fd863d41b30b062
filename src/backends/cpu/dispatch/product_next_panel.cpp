// The panel of weights that a product uses next: tiles prefetch it, or copy it, while they use the one before.
#include <algorithm>
#include <cstddef>
#include <iterator>

#include "backends/cpu/dispatch/next_panel.h"
#include "backends/cpu/dispatch/product_parts.h"

namespace lamina::cpu {

// Behind the other scratch memory of a thread.
void* ProductDispatch::next_of(void* scratch, int thread) const {
  return static_cast<char*>(scratch) + static_cast<size_t>(thread + 1) * thread_bytes_ - aligned(sizeof(NextPanel));
}

// What the tiles have not copied of the next panel is copied behind them.
void ProductDispatch::run_panel_and_copy_next(const Unit& unit, const Panel& panel) const {
  NextPanel& next = *unit.next;
  if (!next.is_copied) copy(unit, panel, next.slot);
  next = next_panel(unit, panel);
  run_panel(unit, at(unit, panel, next.slot));
  if (next.entries == 0) return;
  copy_panel(next.from, next.columns, next.entries - next.copied * program_.entries, next.to);
  next.is_copied = true;
  next.slot = 1 - next.slot;
}

NextPanel ProductDispatch::next_panel(const Unit& unit, const Panel& panel) const {
  NextPanel next{.slot = unit.next->slot, .unit = unit.number};
  std::optional<PanelPlace> place = place_after(unit, panel);
  Unit other = unit;
  if (!place) {
    const ProductUnit* const following = unit_behind(unit);
    if (following == nullptr) return next;
    ++next.unit;
    place = {0, following->first_column};
    other.end_column = following->end_column;
  }
  other.first_k = place->first_k;
  other.count = std::min(program_.k_block, other.end_k - other.first_k);
  const Panel copied = panel_of(other, place->column, std::min(program_.columns, other.end_column - place->column));
  next.from = copied.weights;
  next.to = copied_panel(unit, 1 - next.slot);
  next.columns = copied.columns;
  next.entries = entries_of(other);
  next.from_row = stack_.weights.row_stride * weights_bytes_;
  next.to_row = code_of(copied.columns).columns * element_bytes(program_.panel_type);
  const bool is_as_wide = copied.columns == panel.columns && copied.columns == code_of(copied.columns).columns;
  if (is_as_wide) next.rows_of_tile = next.entries / program_.entries / unit.part.tiles;
  return next;
}

// The one that the same thread takes next, if units are equal shares of one product and no other thread takes it; else null.
const ProductUnit* ProductDispatch::unit_behind(const Unit& unit) const {
  const int64_t of_thread = std::ssize(units_) / program_.threads, next = unit.number + 1;
  if (stack_.products() > 1 || next >= std::ssize(units_) || of_thread == 0 || next % of_thread == 0) return nullptr;
  const ProductUnit& part = units_[static_cast<size_t>(next)];
  return part.is_empty() ? nullptr : &part;
}

std::optional<PanelPlace> ProductDispatch::place_after(const Unit& unit, const Panel& panel) const {
  const int64_t first_column = unit.part.first_column;
  return cpu::place_after({unit.first_k, panel.first_column}, program_, uses_blocks_first(), first_column, unit.end_column,
                          unit.end_k);
}

// Bytes from packed weights of a call to those that are used next.
int64_t ProductDispatch::to_next_weights(const Unit& unit, const Panel& panel) const {
  const std::optional<PanelPlace> place = place_after(unit, panel);
  if (!program_.are_packed_ahead || is_copied(panel) || !place) return unit.count * panel.to_next_k;
  Unit next = unit;
  next.first_k = place->first_k;
  return panel_of(next, place->column, program_.columns).weights - panel.weights;
}

}  // namespace lamina::cpu
