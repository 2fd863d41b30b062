#include "backends/cpu/dispatch/product_dispatch.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "backends/cpu/dispatch/product_parts.h"
#include "backends/cpu/program/tuning.h"

namespace lamina::cpu {

ProductDispatch::ProductDispatch(ProductProgram program, ProductCode code, const PanelMaker* panels, const RowSource* rows)
    : program_(std::move(program)),
      stack_(program_.matrices),
      code_(std::move(code)),
      panels_(panels),
      made_rows_(rows),
      sum_bytes_(bytes_of(program_.sum_type, 1)),
      src_bytes_(bytes_of(stack_.src.dtype, 1)),
      weights_bytes_(bytes_of(stack_.weights.dtype, 1)),
      bias_bytes_(bytes_of(stack_.bias.dtype, 1)),
      dst_bytes_(bytes_of(stack_.dst.dtype, 1)) {
  units_ = product_units(program_, may_cut_units());
  plan_packed_weights();
  plan_scratch();
}

// A panel that is cut is copied once more, which costs little beside its multiplications with many rows. Rows that are made for
// each unit cost too much for another one.
bool ProductDispatch::may_cut_units() const {
  const bool copies_little = program_.are_packed_ahead
                                 ? program_.copied_type == program_.panel_type
                                 : program_.copies_panels && !program_.copies_rows && stack_.m >= kRowsOfCutPanel;
  return copies_little && program_.panels_first && panels_ == nullptr && (made_rows_ == nullptr || finds_rows());
}

void ProductDispatch::plan_scratch() {
  const auto slots = [](int64_t extent, int64_t part) { return static_cast<size_t>(parts(extent, part)); };
  // An odd number of lines: neighbouring rows use different sets of a cache.
  const auto row_bytes = [this](int64_t sums) { return aligned(sums * sum_bytes_) | tuning::kLine; };
  if (program_.copies_rows || finds_rows()) {
    copied_row_bytes_ = row_bytes(program_.k_block);
    rows_bytes_ = finds_rows() ? found_bytes() : static_cast<size_t>(program_.rows * copied_row_bytes_);
    all_rows_bytes_ = rows_bytes_ * (program_.panels_first ? slots(std::min(program_.row_block, stack_.m), program_.rows) : 1);
  }
  if (!program_.are_packed_ahead || program_.panel_type != program_.copied_type) {
    panel_bytes_ = static_cast<size_t>(aligned(panels_ != nullptr ? panels_->panel_bytes(program_.k_block)
                                                                  : program_.k_block * program_.columns * sum_bytes_));
    const bool keeps_all = program_.copies_panels && !program_.panels_first;
    const size_t kept = keeps_all ? slots(program_.column_block, program_.columns) : program_.copies_next ? 2 : 1;
    all_panels_bytes_ = panel_bytes_ * kept;
  }
  tile_bytes_ = static_cast<size_t>(aligned(program_.rows * program_.columns * sum_bytes_));
  if (writes_units() || (stack_.dst.dtype != program_.stored_type && program_.k_block < program_.k))
    sums_row_bytes_ = row_bytes(parts(std::min(program_.column_block, stack_.n), program_.columns) * program_.columns);
  const auto sums_bytes = static_cast<size_t>(sums_row_bytes_ * std::min(program_.row_block, stack_.m));
  const size_t next_bytes = program_.copies_next ? aligned(sizeof(NextPanel)) : 0;
  thread_bytes_ = all_panels_bytes_ + all_rows_bytes_ + 2 * tile_bytes_ + sums_bytes + next_bytes;
}

// The pointers to the rows of a tile, then the rows that are made.
size_t ProductDispatch::found_bytes() const {
  const int64_t parts = program_.k_block / made_rows_->part();
  return static_cast<size_t>(aligned(program_.rows * parts * int64_t{sizeof(void*)}) +
                             aligned(made_rows_->made_bytes(program_.rows, parts)));
}

const ProductCode::PanelCode& ProductDispatch::code_of(int64_t columns) const {
  return columns < program_.columns && panels_ == nullptr ? code_.last : code_.whole;
}

int64_t ProductDispatch::unit_count() const { return stack_.products() * std::ssize(units_); }

void ProductDispatch::run(const void* src, const void* weights, const void* bias, void* dst, void* scratch,
                          const Executor& executor, const UnitEnded& ended) const {
  const Memory memory{static_cast<const char*>(src), static_cast<const char*>(weights), static_cast<const char*>(bias),
                      static_cast<char*>(dst), program_.multiplies_integers ? program_.scales.data() : nullptr};
  run_units(memory, stack_.k, scratch, executor, ended);
}

void ProductDispatch::run_terms(const void* src, const void* weights, void* dst, void* scratch, const Executor& executor,
                                int64_t terms) const {
  run_units({static_cast<const char*>(src), static_cast<const char*>(weights), nullptr, static_cast<char*>(dst), nullptr},
            terms, scratch, executor, nullptr);
}

void ProductDispatch::run_units(const Memory& memory, int64_t terms, void* scratch, const Executor& executor,
                                const UnitEnded& ended) const {
  const int64_t end_k = terms == stack_.k ? program_.k : parts(terms, program_.entries);
  const Executor team = executor.at_most(program_.is_worth_threads ? program_.threads : 1);
  for (int thread = 0; program_.copies_next && thread < team.threads(); ++thread) new (next_of(scratch, thread)) NextPanel;
  for_each_tile(unit_count(), team, [&](int64_t i, int thread) {
    const int64_t entry = i / std::ssize(units_);
    const ProductUnit& part = units_[static_cast<size_t>(i % std::ssize(units_))];
    if (part.is_empty()) return;
    char* const panels = static_cast<char*>(scratch) + static_cast<size_t>(thread) * thread_bytes_;
    char* const rows = panels + all_panels_bytes_;
    char* const tile = rows + all_rows_bytes_;
    char* const tile_of_bias = tile + tile_bytes_;
    Unit unit{entry, at_entry(memory, entry), part, panels, rows, tile, tile_of_bias, tile_of_bias + tile_bytes_, terms, end_k};
    unit.number = i;
    if (program_.copies_next) {
      unit.next = std::launder(static_cast<NextPanel*>(next_of(scratch, thread)));
      unit.next->is_copied = unit.next->is_copied && unit.next->unit == i;
    }
    run_unit(unit);
    if (writes_units()) write_unit(unit);
    if (ended) ended(entry, part.first_row, part.rows(), part.first_column, part.columns());
  });
}

ProductDispatch::Memory ProductDispatch::at_entry(const Memory& memory, int64_t entry) const {
  Memory at = memory;
  const Dims& weights_strides = program_.are_packed_ahead ? packed_strides_ : stack_.weights.batch_strides;
  for (size_t d = stack_.batch.size(); d-- > 0; entry /= stack_.batch[d]) {
    const int64_t place = entry % stack_.batch[d];
    at.src += place * stack_.src.batch_strides[d] * src_bytes_;
    at.weights += place * weights_strides[d] * weights_bytes_;
    if (at.bias != nullptr) at.bias += place * stack_.bias.batch_strides[d] * bias_bytes_;
    at.dst += place * stack_.dst.batch_strides[d] * dst_bytes_;
    if (program_.multiplies_integers && !program_.scale_strides.empty()) at.scales += place * program_.scale_strides[d];
  }
  return at;
}

// If rows are in place, a panel is used for all of k before the next one: its sums stay in the first-level cache, and packed
// weights are read in the order in which they are in memory.
void ProductDispatch::run_unit(const Unit& unit) const {
  if (uses_blocks_first()) return run_blocks(unit);
  Unit of_panel = unit;
  for (int64_t column = unit.part.first_column; column < unit.part.end_column; column = of_panel.part.end_column) {
    of_panel.part.first_column = column;
    of_panel.part.end_column = std::min(column + program_.columns, unit.part.end_column);
    run_blocks(of_panel);
  }
}

void ProductDispatch::run_blocks(Unit unit) const {
  for (unit.first_k = 0; unit.first_k < unit.end_k; unit.first_k += program_.k_block) {
    unit.count = std::min(program_.k_block, unit.end_k - unit.first_k);
    if (program_.panels_first)
      run_by_panels(unit);
    else
      run_by_rows(unit);
  }
}

void ProductDispatch::run_by_panels(const Unit& unit) const {
  if (finds_rows())
    for_each_rows(unit, [&](const Rows& rows, int64_t slot) { copy(unit, rows, slot); });
  else
    copy(unit, rows_of(unit), 0);
  for_each_panel(unit, [&](const Panel& panel, int64_t) {
    if (unit.next != nullptr) return run_panel_and_copy_next(unit, panel);
    copy(unit, panel, 0);
    run_panel(unit, at(unit, panel, 0));
  });
}

void ProductDispatch::run_panel(const Unit& unit, const Panel& panel) const {
  if (runs_tiles_together(panel)) return run_tiles(unit, panel);
  for_each_rows(unit, [&](const Rows& rows, int64_t slot) { run_tile(unit, at(unit, rows, slot), panel); });
}

void ProductDispatch::run_by_rows(const Unit& unit) const {
  for_each_panel(unit, [&](const Panel& panel, int64_t slot) { copy(unit, panel, slot); });
  for_each_rows(unit, [&](const Rows& rows, int64_t) {
    copy(unit, rows, 0);
    const int64_t together = panels_together(unit);
    if (together > 0) {
      const Panel first = panel_of(unit, unit.part.first_column, program_.columns);
      call_tiles(unit, at(unit, rows, 0), first, sums_of(unit, rows, first), nullptr, 0, together);
    }
    for_each_panel(unit, [&](const Panel& panel, int64_t slot) {
      if (slot >= together) run_tile(unit, at(unit, rows, 0), at(unit, panel, slot));
    });
  });
}

// The number of panels that one call uses: weights are in place, and the sums, which are kept for further entries of k, are
// beside each other.
int64_t ProductDispatch::panels_together(const Unit& unit) const {
  const bool keeps_sums = unit.first_k + unit.count < unit.end_k && !program_.adds;
  if (!reads_in_place() || transposes() || panels_ != nullptr || !keeps_sums) return 0;
  const bool are_adjacent = sums_row_bytes_ > 0 || is_direct(panel_of(unit, unit.part.first_column, program_.columns));
  return are_adjacent ? unit.part.columns() / program_.columns : 0;
}

// All rows of the unit, which are copied together: where src is contiguous along them, each of its cache lines is read once.
ProductDispatch::Rows ProductDispatch::rows_of(const Unit& unit) const {
  const Steps steps{stack_.src.row_stride * src_bytes_, stack_.src.column_stride * src_bytes_};
  const char* const src = unit.at.src + unit.part.first_row * steps.row + unit.first_k * program_.entries * steps.column;
  return {unit.part.first_row, unit.part.rows(), src, steps.row, steps.column};
}

template <typename Visit>
void ProductDispatch::for_each_rows(const Unit& unit, const Visit& visit) const {
  Rows rows = rows_of(unit);
  for (int64_t tile = 0; tile < unit.part.tiles; ++tile) {
    rows.count = unit.part.height + (tile < unit.part.taller ? 1 : 0);
    visit(rows, tile);
    rows.first += rows.count;
    rows.src += rows.count * rows.to_next_row;
  }
}

template <typename Visit>
void ProductDispatch::for_each_panel(const Unit& unit, const Visit& visit) const {
  int64_t slot = 0;
  const int64_t end = unit.part.end_column;
  for (int64_t column = unit.part.first_column; column < end; column += program_.columns)
    visit(panel_of(unit, column, std::min(program_.columns, end - column)), slot++);
}

// In place, or packed ahead.
ProductDispatch::Panel ProductDispatch::panel_of(const Unit& unit, int64_t column, int64_t columns) const {
  Panel panel{column, columns, unit.at.weights, stack_.weights.row_stride * weights_bytes_};
  if (program_.are_packed_ahead) {
    panel.to_next_k = packed_columns(column) * program_.entries * weights_bytes_;
    panel.weights += column * packed_entries() * program_.entries * weights_bytes_ + unit.first_k * panel.to_next_k;
  } else {
    panel.weights += unit.first_k * program_.entries * panel.to_next_k + column * stack_.weights.column_stride * weights_bytes_;
    panel.to_next_k *= program_.entries;
    if (transposes()) panel.to_next_k = stack_.weights.column_stride * weights_bytes_;
  }
  return panel;
}

// Where the rows are copied to, or the pointers to them.
char* ProductDispatch::copied_rows(const Unit& unit, const Rows& rows, int64_t slot) const {
  if (finds_rows() || !program_.panels_first) return unit.rows + slot * static_cast<int64_t>(rows_bytes_);
  return unit.rows + (rows.first - unit.part.first_row) * copied_row_bytes_;
}

void ProductDispatch::copy(const Unit& unit, const Rows& rows, int64_t slot) const {
  char* const to = copied_rows(unit, rows, slot);
  if (finds_rows()) {
    const int64_t part = made_rows_->part();
    char* const made = to + aligned(rows.count * (unit.count / part) * int64_t{sizeof(void*)});
    return made_rows_->find_rows(unit.at.src, unit.entry, rows.first, rows.count, unit.first_k / part, unit.count / part,
                                 reinterpret_cast<const void**>(to), made);
  }
  if (!program_.copies_rows) return;
  const int64_t entries = entries_of(unit), bytes = sum_bytes_ / program_.entries;
  if (made_rows_ != nullptr)
    made_rows_->make_rows(unit.at.src, unit.entry, rows.first, rows.count, unit.first_k * program_.entries, entries, to,
                          copied_row_bytes_);
  else
    code_.copy_src(rows.src, {rows.to_next_row, rows.to_next_k}, to, {copied_row_bytes_, bytes}, rows.count, entries);
  if (entries % program_.entries == 0) return;
  for (int64_t row = 0; row < rows.count; ++row)
    std::memset(to + row * copied_row_bytes_ + entries * bytes, 0, static_cast<size_t>(bytes));
}

// Of k; without the one that a last pair of integers lacks.
int64_t ProductDispatch::entries_of(const Unit& unit) const {
  return std::min(unit.count * program_.entries, unit.terms - unit.first_k * program_.entries);
}

ProductDispatch::Rows ProductDispatch::at(const Unit& unit, const Rows& rows, int64_t slot) const {
  if (!program_.copies_rows && !finds_rows())
    return {rows.first, rows.count, rows.src, rows.to_next_row, rows.to_next_k * program_.entries};
  return {rows.first, rows.count, copied_rows(unit, rows, slot), copied_row_bytes_,
          finds_rows() ? made_rows_->to_next_k() : sum_bytes_};
}

// Weights in place that are contiguous along k.
bool ProductDispatch::transposes() const { return reads_in_place() && stack_.weights.column_stride != 1; }

// Of weights that are read in place, only the last panel is copied if it is narrower than a register tile. Packed weights are
// converted, if not by the tiles.
bool ProductDispatch::is_copied(const Panel& panel) const {
  if (program_.are_packed_ahead) return program_.copied_type != program_.panel_type;
  return program_.copies_panels || panel.columns < code_of(panel.columns).columns;
}

char* ProductDispatch::copied_panel(const Unit& unit, int64_t slot) const {
  return unit.panels + (program_.copies_panels ? slot * static_cast<int64_t>(panel_bytes_) : 0);
}

void ProductDispatch::copy(const Unit& unit, const Panel& panel, int64_t slot) const {
  char* const to = copied_panel(unit, slot);
  if (panels_ != nullptr)
    panels_->make_panel(unit.at.weights, unit.first_k, unit.count, panel.first_column, panel.columns, to);
  else if (!is_copied(panel))
    return;
  else if (program_.are_packed_ahead)
    code_of(panel.columns).conversion.as<PanelCopyFunction>()(panel.weights, panel.to_next_k, to, unit.count);
  else
    copy_panel(panel.weights, panel.columns, entries_of(unit), to);
}

ProductDispatch::Panel ProductDispatch::at(const Unit& unit, const Panel& panel, int64_t slot) const {
  if (!is_copied(panel)) return panel;
  return {panel.first_column, panel.columns, copied_panel(unit, slot),
          code_of(panel.columns).columns * element_bytes(program_.panel_type)};
}

void ProductDispatch::copy_panel(const char* from, int64_t columns, int64_t entries, char* to) const {
  const ProductCode::PanelCode& code = code_of(columns);
  code_.copy_weights(code.copy, from, columns, code.columns, entries, to);
}

// Register tiles of panels from a source write whole vectors.
bool ProductDispatch::has_columns_of_code(const Panel& panel) const {
  return panels_ == nullptr || panel.columns == program_.columns;
}

bool ProductDispatch::is_direct(const Panel& panel) const {
  return has_columns_of_code(panel) && stack_.dst.column_stride == 1 && stack_.dst.dtype == program_.stored_type;
}

// Whether the results of a unit are written when all of its sums are there: results that are contiguous along rows are
// transposed, which is fast in squares.
bool ProductDispatch::writes_units() const {
  return !program_.panels_first && !program_.adds && !program_.multiplies_integers && stack_.dst.row_stride == 1 &&
         stack_.dst.column_stride != 1;
}

void ProductDispatch::write_unit(const Unit& unit) const {
  const Steps steps{stack_.dst.row_stride * dst_bytes_, stack_.dst.column_stride * dst_bytes_};
  char* const dst = unit.at.dst + unit.part.first_row * steps.row + unit.part.first_column * steps.column;
  code_.copy_out(unit.sums, {sums_row_bytes_, sum_bytes_}, dst, steps, unit.part.rows(), unit.part.columns());
}

ProductDispatch::Sums ProductDispatch::sums_of(const Unit& unit, const Rows& rows, const Panel& panel) const {
  if (is_direct(panel)) {
    const int64_t row = stack_.dst.row_stride * dst_bytes_;
    return {unit.at.dst + rows.first * row + panel.first_column * dst_bytes_, row};
  }
  if (sums_row_bytes_ == 0) return {unit.tile, code_of(panel.columns).columns * sum_bytes_};
  return {unit.sums + (rows.first - unit.part.first_row) * sums_row_bytes_ +
              (panel.first_column - unit.part.first_column) * sum_bytes_,
          sums_row_bytes_};
}

// In place, or a copy of the tile's part.
ProductDispatch::Sums ProductDispatch::bias_of(const Unit& unit, const Rows& rows, const Panel& panel) const {
  const kernel::MatrixStack& bias = stack_.bias;
  const int64_t columns = code_of(panel.columns).columns;
  const Steps steps{bias.row_stride * bias_bytes_, bias.column_stride * bias_bytes_}, dense{columns * sum_bytes_, sum_bytes_};
  const char* const at = unit.at.bias + rows.first * steps.row + panel.first_column * steps.column;
  if (has_columns_of_code(panel) && bias.column_stride == 1 && bias.dtype == program_.bias_type)
    return {const_cast<char*>(at), steps.row};
  code_.copy_bias(at, steps, unit.bias, dense, rows.count, panel.columns);
  return {unit.bias, dense.row};
}

// Whether one call computes all tiles of the same height: sums are in dst, and all rows have the same bias.
bool ProductDispatch::runs_tiles_together(const Panel& panel) const {
  const kernel::MatrixStack& bias = stack_.bias;
  const bool has_one_bias =
      !stack_.has_bias || (bias.row_stride == 0 && bias.column_stride == 1 && bias.dtype == program_.bias_type);
  return panels_ == nullptr && is_direct(panel) && has_one_bias && !program_.adds && !program_.multiplies_integers;
}

void ProductDispatch::run_tiles(const Unit& unit, const Panel& panel) const {
  const auto [tiles, taller] = std::pair(unit.part.tiles, unit.part.taller);
  for_each_rows(unit, [&](const Rows& tile, int64_t slot) {
    if (slot != 0 && slot != taller) return;
    const bool is_last = unit.first_k + unit.count == unit.end_k;
    const Sums added = is_last && stack_.has_bias ? bias_of(unit, tile, panel) : Sums{nullptr, 0};
    const int64_t count = slot < taller ? taller : tiles - taller;
    call_tiles(unit, at(unit, tile, slot), panel, sums_of(unit, tile, panel), added.at, added.to_next_row, count);
  });
}

ColumnGroups ProductDispatch::groups() const { return made_rows_ == nullptr ? ColumnGroups{} : made_rows_->groups(); }

// Bytes.
int64_t ProductDispatch::first_group(const Panel& panel) const {
  const auto [columns, step] = groups();
  return columns == 0 ? 0 : panel.first_column / columns * step * sum_bytes_;
}

void ProductDispatch::call_tiles(const Unit& unit, const Rows& rows, const Panel& panel, const Sums& sums, const char* added,
                                 int64_t added_row, int64_t tiles) const {
  const int64_t part = finds_rows() ? made_rows_->part() : unit.count;
  const int64_t next_rows = rows.count * sums.to_next_row,
                next_columns = panel.columns * (is_direct(panel) ? dst_bytes_ : sum_bytes_);
  const int64_t src_tile = finds_rows() ? static_cast<int64_t>(rows_bytes_) : rows.count * rows.to_next_row;
  const int64_t ahead_k = prefetched_for_entry(panel.to_next_k, unit.part.tiles);
  ProductStrides strides{.src_row = rows.to_next_row,
                         .src_k = rows.to_next_k,
                         .weights_k = panel.to_next_k,
                         .dst_row = sums.to_next_row,
                         .bias_row = added_row,
                         .next_tile = program_.panels_first ? next_rows : next_columns,
                         .parts = unit.count / part,
                         .tiles = tiles,
                         .src_tile = program_.panels_first ? src_tile : 0,
                         .dst_tile = program_.panels_first ? next_rows : next_columns,
                         .first_group = first_group(panel),
                         .ahead = to_next_weights(unit, panel) + unit.part.tile_of(rows.first) * unit.count * ahead_k,
                         .ahead_k = ahead_k,
                         .ends = unit.first_k + unit.count == unit.end_k ? 1 : 0,
                         .weights_tile = program_.panels_first ? 0 : panel.columns * weights_bytes_,
                         .weights_vector = packed_entries() * panel.to_next_k};
  if (unit.next != nullptr && unit.next->rows_of_tile > 0) unit.next->share(tiles, unit.count, program_.entries, strides);
  const auto function = code_of(panel.columns).tiles[static_cast<size_t>(rows.count)].as<ProductTileFunction>();
  function(rows.src, panel.weights, sums.at, added, part, &strides, unit.first_k == 0 ? 0 : 1);
}

// The part of dst that register tiles cannot write is copied out, and in before that if sums are carried over through dst.
void ProductDispatch::run_tile(const Unit& unit, const Rows& rows, const Panel& panel) const {
  const Steps steps{stack_.dst.row_stride * dst_bytes_, stack_.dst.column_stride * dst_bytes_};
  char* const result = unit.at.dst + rows.first * steps.row + panel.first_column * steps.column;
  const bool is_first = unit.first_k == 0, is_last = unit.first_k + unit.count == unit.end_k;
  const bool goes_through_dst = !is_direct(panel) && sums_row_bytes_ == 0;
  const Sums sums = sums_of(unit, rows, panel);
  if (goes_through_dst && (!is_first || program_.adds))
    code_.copy_in(result, steps, sums.at, {sums.to_next_row, sum_bytes_}, rows.count, panel.columns);
  Sums added{nullptr, 0};
  if (program_.adds)
    added = sums;
  else if (is_last && stack_.has_bias)
    added = bias_of(unit, rows, panel);
  call_tiles(unit, rows, panel, sums, program_.multiplies_integers ? nullptr : added.at, added.to_next_row, 1);
  if (is_direct(panel) || writes_units() || !(goes_through_dst || is_last)) return;
  if (!program_.multiplies_integers)
    return code_.copy_out(sums.at, {sums.to_next_row, sum_bytes_}, result, steps, rows.count, panel.columns);
  const float* const scales = unit.at.scales + (program_.scales.size() == 1 ? 0 : panel.first_column);
  code_.scale_out(sums.at, sums.to_next_row, scales, added.at, added.to_next_row, result, steps, rows.count, panel.columns);
}

}  // namespace lamina::cpu
