#include "backends/cpu/library/products/product_runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/product/tuning.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr size_t kLine = 64;

size_t whole_lines(int64_t bytes) { return (static_cast<size_t>(bytes) + kLine - 1) / kLine * kLine; }

DataType storage_of(kernel::Type sums) {
  return sums == kernel::Type::f64 ? DataType::f64 : sums == kernel::Type::s32 ? DataType::s32 : DataType::f32;
}

}  // namespace

// Rows and columns of one entry of the batch, and some entries of k, on one thread.
struct ProductRunner::Unit {
  int64_t entry;
  Memory at;  // of the entry
  int64_t first_row, end_row, first_column, end_column;
  // Scratch memory: copied weights; copied rows of src; tiles of dst and of the bias; the sums of the unit.
  char *panels, *rows, *tile, *bias, *sums;
  int64_t first_k = 0, count = 0;
};

// Rows of src as a register tile reads them, or the pointers to them. Distances are in bytes.
struct ProductRunner::Rows {
  int64_t first, count;
  const char* src;
  int64_t to_next_row, to_next_k;
};

// The weights of as many columns as a register tile has.
struct ProductRunner::Panel {
  int64_t first_column, columns;
  const char* weights;
  int64_t to_next_k;  // bytes; to the next column if tiles transpose the weights
};

// What a register tile adds to, or writes.
struct ProductRunner::Sums {
  char* at;
  int64_t to_next_row;  // bytes
};

ProductRunner::ProductRunner(kernel::Contraction contraction, const Machine& machine, const ProductSchedule& schedule,
                             int threads, const ProductWeights& weights, const RowSource* rows)
    : contraction_(std::move(contraction)),
      stack_(contraction_.matrices),
      machine_(machine),
      schedule_(schedule),
      threads_(threads),
      weights_(weights),
      row_source_(rows),
      sum_type_(storage_of(contraction_.sum_type())),
      bias_type_(contraction_.integers ? DataType::f32 : sum_type_),
      panel_type_(schedule_.copies_panels ? sum_type_ : type_of_panels(contraction_)),
      copied_type_(weights_.are_packed_ahead ? type_of_panels(contraction_) : panel_type_),
      k_(contraction_.elements_of_k()),
      entries_(contraction_.entries()),
      sum_bytes_(bytes_of(sum_type_, 1)),
      src_bytes_(bytes_of(stack_.src.dtype, 1)),
      weights_bytes_(bytes_of(stack_.weights.dtype, 1)),
      bias_bytes_(bytes_of(stack_.bias.dtype, 1)),
      dst_bytes_(bytes_of(stack_.dst.dtype, 1)),
      columns_(panel_columns(contraction_, schedule)) {
  check_types();
  copy_weights_ = WeightsCopy(contraction_, copied_type_, machine_, schedule.vector_bits);
  const int64_t rest = stack_.n % columns_;
  LAMINA_CHECK(weights_.source == nullptr || schedule_.copies_panels, kernel::print(contraction_));
  if (stack_.n >= columns_ || weights_.source != nullptr) compile(whole_, columns_);
  if (rest > 0 && weights_.source == nullptr) compile(last_, rest);
  compile_copies();
  plan_units();
  plan_packed_weights();
  plan_scratch();
  const double sums = static_cast<double>(stack_.products()) * static_cast<double>(stack_.m) * static_cast<double>(stack_.n);
  const double vectors = sums * static_cast<double>(k_) * static_cast<double>(8 * sum_bytes_) / schedule_.vector_bits;
  is_worth_threads_ = vectors * machine_.costs.operation > 2 * machine_.costs.wait;
}

void ProductRunner::check_types() const {
  const bool is_wide = sum_type_ == DataType::f64;
  for (const kernel::MatrixStack* matrix : {&stack_.src, &stack_.weights, &stack_.bias, &stack_.dst}) {
    if (matrix == &stack_.bias && !stack_.has_bias) continue;
    const bool is_integer = contraction_.integers && is_byte_integer(matrix->dtype);
    LAMINA_CHECK(is_integer || is_wide == (matrix->dtype == DataType::f64), kernel::print(contraction_));
  }
  LAMINA_CHECK(stack_.src.dtype == sum_type_ || schedule_.copies_rows || contraction_.multiplies_pairs,
               kernel::print(contraction_));
  LAMINA_CHECK(groups().columns == 0 || (finds_rows() && weights_.source == nullptr), kernel::print(contraction_));
  LAMINA_CHECK(!transposes() || !finds_rows(), kernel::print(contraction_));
  LAMINA_CHECK(!finds_rows() || schedule_.k_block % row_source_->part() == 0, kernel::print(contraction_));
  LAMINA_CHECK(stack_.dst.dtype == sum_type_ || !contraction_.adds, kernel::print(contraction_));
}

void ProductRunner::compile_copies() {
  const int bits = schedule_.vector_bits;
  if (stack_.has_bias) copy_bias_ = MatrixCopy(stack_.bias.dtype, bias_type_, machine_, bits);
  if (contraction_.integers) {
    copy_src_ = MatrixCopy::of_integers(stack_.src.dtype, contraction_.integers->src_zero_point, machine_, bits);
    scale_out_ = ScaledCopy(stack_.dst.dtype, contraction_.integers->scales.size() == 1, machine_, bits);
    return;
  }
  copy_src_ = MatrixCopy(stack_.src.dtype, contraction_.multiplies_pairs ? stack_.src.dtype : sum_type_, machine_, bits);
  copy_in_ = MatrixCopy(sum_type_, sum_type_, machine_, bits);
  copy_out_ = MatrixCopy(sum_type_, stack_.dst.dtype, machine_, bits);
}

// The last blocks are smaller, so that all threads end at about the same time. Weights in place are read in long rows instead.
void ProductRunner::plan_units() {
  const bool is_shared = threads_ > 1 && !reads_in_place() && schedule_.column_block < stack_.n && stack_.products() == 1;
  for (int64_t first = 0, end = 0; first < stack_.n; first = end) {
    const int64_t share = is_shared ? (stack_.n - first) / (2 * threads_) / columns_ * columns_ : stack_.n;
    end = std::min(first + std::min(schedule_.column_block, std::max(share, columns_)), stack_.n);
    column_blocks_.push_back({first, end});
  }
}

void ProductRunner::plan_packed_weights() {
  const int64_t rest = stack_.n % columns_, columns = stack_.n - rest + (rest == 0 ? 0 : code_of(rest).columns);
  packed_matrix_bytes_ = static_cast<int64_t>(whole_lines(k_ * columns * entries_ * weights_bytes_));
  packed_strides_ = stack_.weights.batch_strides;
  for (size_t d = packed_strides_.size(); d-- > 0;) {
    if (packed_strides_[d] == 0) continue;
    packed_strides_[d] = packed_matrices_ * packed_matrix_bytes_ / weights_bytes_;
    packed_matrices_ *= stack_.batch[d];
  }
}

void ProductRunner::plan_scratch() {
  const auto slots = [](int64_t extent, int64_t part) { return static_cast<size_t>(parts(extent, part)); };
  // An odd number of lines: neighbouring rows use different sets of a cache.
  const auto row_bytes = [this](int64_t sums) { return static_cast<int64_t>(whole_lines(sums * sum_bytes_) | kLine); };
  if (schedule_.copies_rows || finds_rows()) {
    copied_row_bytes_ = row_bytes(schedule_.k_block);
    rows_bytes_ = finds_rows() ? found_bytes() : static_cast<size_t>(schedule_.rows * copied_row_bytes_);
    all_rows_bytes_ =
        rows_bytes_ * (schedule_.panels_first ? slots(std::min(schedule_.row_block, stack_.m), schedule_.rows) : 1);
  }
  if (!weights_.are_packed_ahead || panel_type_ != copied_type_) {
    panel_bytes_ = whole_lines(weights_.source != nullptr ? weights_.source->panel_bytes(schedule_.k_block)
                                                          : schedule_.k_block * columns_ * sum_bytes_);
    const bool keeps_all = schedule_.copies_panels && !schedule_.panels_first;
    all_panels_bytes_ = panel_bytes_ * (keeps_all ? slots(schedule_.column_block, columns_) : 1);
  }
  tile_bytes_ = whole_lines(schedule_.rows * columns_ * sum_bytes_);
  if (stack_.dst.dtype != sum_type_ && schedule_.k_block < k_)
    sums_row_bytes_ = row_bytes(parts(std::min(schedule_.column_block, stack_.n), columns_) * columns_);
  thread_bytes_ = all_panels_bytes_ + all_rows_bytes_ + 2 * tile_bytes_ +
                  static_cast<size_t>(sums_row_bytes_ * std::min(schedule_.row_block, stack_.m));
}

// The pointers to the rows of a tile, then the rows that are made.
size_t ProductRunner::found_bytes() const {
  const int64_t parts = schedule_.k_block / row_source_->part();
  return whole_lines(schedule_.rows * parts * int64_t{sizeof(void*)}) +
         whole_lines(row_source_->made_bytes(schedule_.rows, parts));
}

void ProductRunner::compile(PanelCode& code, int64_t columns) const {
  const int64_t lanes = columns_ / schedule_.vectors, vectors = parts(columns, lanes);
  code.columns = vectors * lanes;
  code.last_lanes = static_cast<int>(columns % lanes);
  code.tiles.resize(static_cast<size_t>(schedule_.rows) + 1);
  for (const int64_t rows : {std::min(schedule_.row_block, stack_.m), stack_.m % schedule_.row_block}) {
    if (rows == 0) continue;
    const int64_t tiles = parts(rows, schedule_.rows);
    compile_tile(code, rows / tiles);
    compile_tile(code, parts(rows, tiles));
  }
  if (weights_.source == nullptr && (schedule_.copies_panels || weights_.are_packed_ahead))
    compile_panel_copies(code, static_cast<int>(vectors));
}

void ProductRunner::compile_panel_copies(PanelCode& code, int vectors) const {
  int64_t ahead = 0;
  if (schedule_.prefetches) ahead = copy_weights_.is_along_k() ? product_tuning::kBytesAlongK : columns_ * weights_bytes_;
  code.copy = copy_weights_.code(vectors, ahead, machine_);
  if (copied_type_ == panel_type_) return;
  code.conversion =
      compile_code(source_of(PanelCopy{.from = copied_type_,
                                       .to = panel_type_,
                                       .zero_point = contraction_.integers ? contraction_.integers->weights_zero_point : 0,
                                       .is_paired = true,
                                       .vector_bits = schedule_.vector_bits,
                                       .vectors = vectors,
                                       .along_k = false,
                                       .bytes_ahead = 0}),
                   machine_);
}

void ProductRunner::compile_tile(PanelCode& code, int64_t rows) const {
  CompiledCode& tile = code.tiles[static_cast<size_t>(rows)];
  if (tile.memory != nullptr) return;
  const ProductTile of_floats{.type = contraction_.sum_type(),
                              .weights = joins_rows(code) ? stack_.weights.dtype : panel_type_,
                              .zero_point = contraction_.integers ? contraction_.integers->weights_zero_point : 0,
                              .vector_bits = schedule_.vector_bits,
                              .rows = static_cast<int>(rows),
                              .vectors = static_cast<int>(code.columns * schedule_.vectors / columns_),
                              .last_lanes = code.last_lanes,
                              .multiplies_pairs = contraction_.multiplies_pairs,
                              .bytes_ahead = bytes_ahead(),
                              .along_k = transposes() && code.last_lanes == 0,
                              .has_pointers = finds_rows(),
                              .groups = groups()};
  tile = compile_code(weights_.source == nullptr ? source_of(of_floats) : weights_.source->tile(of_floats), machine_);
}

const ProductRunner::PanelCode& ProductRunner::code_of(int64_t columns) const {
  return columns < columns_ && weights_.source == nullptr ? last_ : whole_;
}

void ProductRunner::pack(const void* weights, void* packed, const Executor& executor) const {
  const int64_t panels = parts(stack_.n, columns_);
  for_each_tile(packed_matrices_ * panels, executor.at_most(threads_), [&](int64_t i, int) {
    const int64_t column = i % panels * columns_;
    int64_t matrix = i / panels, at = column * stack_.weights.column_stride;
    for (size_t d = stack_.batch.size(); d-- > 0;) {
      if (packed_strides_[d] == 0) continue;
      at += matrix % stack_.batch[d] * stack_.weights.batch_strides[d];
      matrix /= stack_.batch[d];
    }
    copy_panel(static_cast<const char*>(weights) + at * weights_bytes_, std::min(columns_, stack_.n - column), stack_.k,
               static_cast<char*>(packed) + i / panels * packed_matrix_bytes_ + column * k_ * entries_ * weights_bytes_);
  });
}

int64_t ProductRunner::unit_count() const {
  return stack_.products() * parts(stack_.m, schedule_.row_block) * static_cast<int64_t>(column_blocks_.size());
}

void ProductRunner::run(const void* src, const void* weights, const void* bias, void* dst, void* scratch,
                        const Executor& executor, const UnitEnded& ended) const {
  const Memory memory{static_cast<const char*>(src), static_cast<const char*>(weights), static_cast<const char*>(bias),
                      static_cast<char*>(dst), contraction_.integers ? contraction_.integers->scales.data() : nullptr};
  const int64_t row_blocks = parts(stack_.m, schedule_.row_block);
  const auto column_blocks = static_cast<int64_t>(column_blocks_.size());
  const Executor team = executor.at_most(is_worth_threads_ ? threads_ : 1);
  // A thread takes successive units: they share the columns of the larger factor, so that it reads only a part of that.
  const bool shares_columns = stack_.n > stack_.m;
  for_each_tile(unit_count(), team, [&](int64_t unit, int thread) {
    const int64_t place = unit % (row_blocks * column_blocks);
    const int64_t row = (shares_columns ? place % row_blocks : place / column_blocks) * schedule_.row_block;
    const int64_t block = shares_columns ? place / row_blocks : place % column_blocks;
    const Columns& columns = column_blocks_[static_cast<size_t>(block)];
    char* const panels = static_cast<char*>(scratch) + static_cast<size_t>(thread) * thread_bytes_;
    char* const rows = panels + all_panels_bytes_;
    char* const tile = rows + all_rows_bytes_;
    char* const tile_of_bias = tile + tile_bytes_;
    const int64_t entry = unit / column_blocks / row_blocks;
    const int64_t end_row = std::min(row + schedule_.row_block, stack_.m);
    run_unit({entry, at_entry(memory, entry), row, end_row, columns.first, columns.end, panels, rows, tile, tile_of_bias,
              tile_of_bias + tile_bytes_});
    if (ended) ended(entry, row, end_row - row, columns.first, columns.end - columns.first);
  });
}

ProductRunner::Memory ProductRunner::at_entry(const Memory& memory, int64_t entry) const {
  Memory at = memory;
  const Dims& weights_strides = weights_.are_packed_ahead ? packed_strides_ : stack_.weights.batch_strides;
  for (size_t d = stack_.batch.size(); d-- > 0; entry /= stack_.batch[d]) {
    const int64_t place = entry % stack_.batch[d];
    at.src += place * stack_.src.batch_strides[d] * src_bytes_;
    at.weights += place * weights_strides[d] * weights_bytes_;
    if (at.bias != nullptr) at.bias += place * stack_.bias.batch_strides[d] * bias_bytes_;
    at.dst += place * stack_.dst.batch_strides[d] * dst_bytes_;
    if (contraction_.integers && !contraction_.integers->scale_strides.empty())
      at.scales += place * contraction_.integers->scale_strides[d];
  }
  return at;
}

void ProductRunner::run_unit(Unit unit) const {
  for (unit.first_k = 0; unit.first_k < k_; unit.first_k += schedule_.k_block) {
    unit.count = std::min(schedule_.k_block, k_ - unit.first_k);
    if (schedule_.panels_first)
      run_by_panels(unit);
    else
      run_by_rows(unit);
  }
}

void ProductRunner::run_by_panels(const Unit& unit) const {
  for_each_rows(unit, [&](const Rows& rows, int64_t slot) { copy(unit, rows, slot); });
  for_each_panel(unit, [&](const Panel& panel, int64_t) {
    copy(unit, panel, 0);
    if (runs_tiles_together(panel)) return run_tiles(unit, at(unit, panel, 0));
    for_each_rows(unit, [&](const Rows& rows, int64_t slot) { run_tile(unit, at(unit, rows, slot), at(unit, panel, 0)); });
  });
}

void ProductRunner::run_by_rows(const Unit& unit) const {
  for_each_panel(unit, [&](const Panel& panel, int64_t slot) { copy(unit, panel, slot); });
  for_each_rows(unit, [&](const Rows& rows, int64_t) {
    copy(unit, rows, 0);
    for_each_panel(unit, [&](const Panel& panel, int64_t slot) { run_tile(unit, at(unit, rows, 0), at(unit, panel, slot)); });
  });
}

// Tiles of almost equal height: the first ones have a row more.
template <typename Visit>
void ProductRunner::for_each_rows(const Unit& unit, const Visit& visit) const {
  const Steps steps{stack_.src.row_stride * src_bytes_, stack_.src.column_stride * src_bytes_};
  const int64_t rows = unit.end_row - unit.first_row, tiles = parts(rows, schedule_.rows), extra = rows % tiles;
  const char* src = unit.at.src + unit.first_row * steps.row + unit.first_k * entries_ * steps.column;
  int64_t row = unit.first_row;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t count = rows / tiles + (tile < extra ? 1 : 0);
    visit(Rows{row, count, src, steps.row, steps.column}, tile);
    row += count;
    src += count * steps.row;
  }
}

template <typename Visit>
void ProductRunner::for_each_panel(const Unit& unit, const Visit& visit) const {
  int64_t slot = 0;
  for (int64_t column = unit.first_column; column < unit.end_column; column += columns_)
    visit(panel_of(unit, column, std::min(columns_, unit.end_column - column)), slot++);
}

// In place, or packed ahead.
ProductRunner::Panel ProductRunner::panel_of(const Unit& unit, int64_t column, int64_t columns) const {
  Panel panel{column, columns, unit.at.weights, stack_.weights.row_stride * weights_bytes_};
  if (weights_.are_packed_ahead) {
    const int64_t packed_k = weights_.packed_k > 0 ? parts(weights_.packed_k, entries_) : k_;
    panel.to_next_k = packed_columns(column) * entries_ * weights_bytes_;
    panel.weights += column * packed_k * entries_ * weights_bytes_ + unit.first_k * panel.to_next_k;
  } else {
    panel.weights += unit.first_k * entries_ * panel.to_next_k + column * stack_.weights.column_stride * weights_bytes_;
    panel.to_next_k *= entries_;
    if (transposes()) panel.to_next_k = stack_.weights.column_stride * weights_bytes_;
  }
  return panel;
}

// Of the panel that was packed with this first column.
int64_t ProductRunner::packed_columns(int64_t column) const {
  if (weights_.source != nullptr) return columns_;
  const int64_t lanes = columns_ / schedule_.vectors;
  const int64_t rest = (weights_.packed_n > 0 ? weights_.packed_n : stack_.n) - column;
  return std::min(parts(rest, lanes) * lanes, columns_);
}

void ProductRunner::copy(const Unit& unit, const Rows& rows, int64_t slot) const {
  char* const to = unit.rows + slot * static_cast<int64_t>(rows_bytes_);
  if (finds_rows()) {
    const int64_t part = row_source_->part();
    char* const made = to + whole_lines(rows.count * (unit.count / part) * int64_t{sizeof(void*)});
    return row_source_->find_rows(unit.at.src, unit.entry, rows.first, rows.count, unit.first_k / part, unit.count / part,
                                  reinterpret_cast<const void**>(to), made);
  }
  if (!schedule_.copies_rows) return;
  const int64_t entries = entries_of(unit), bytes = sum_bytes_ / entries_;
  if (row_source_ != nullptr)
    row_source_->make_rows(unit.at.src, unit.entry, rows.first, rows.count, unit.first_k * entries_, entries, to,
                           copied_row_bytes_);
  else
    copy_src_(rows.src, {rows.to_next_row, rows.to_next_k}, to, {copied_row_bytes_, bytes}, rows.count, entries);
  if (entries % entries_ == 0) return;
  for (int64_t row = 0; row < rows.count; ++row)
    std::memset(to + row * copied_row_bytes_ + entries * bytes, 0, static_cast<size_t>(bytes));
}

// Of k; without the one that a last pair of integers lacks.
int64_t ProductRunner::entries_of(const Unit& unit) const {
  return std::min(unit.count * entries_, stack_.k - unit.first_k * entries_);
}

ProductRunner::Rows ProductRunner::at(const Unit& unit, const Rows& rows, int64_t slot) const {
  if (!schedule_.copies_rows && !finds_rows())
    return {rows.first, rows.count, rows.src, rows.to_next_row, rows.to_next_k * entries_};
  return {rows.first, rows.count, unit.rows + slot * static_cast<int64_t>(rows_bytes_), copied_row_bytes_,
          finds_rows() ? row_source_->to_next_k() : sum_bytes_};
}

// Along a packed panel, along k, or in the same row of one of the next panels.
int64_t ProductRunner::bytes_ahead() const {
  if (!schedule_.prefetches) return 0;
  if (weights_.are_packed_ahead) return copied_type_ == panel_type_ ? product_tuning::kBytesOfPanelAhead : 0;
  if (!reads_in_place()) return 0;
  return transposes() ? product_tuning::kBytesAlongK : std::max(columns_ * weights_bytes_, product_tuning::kBytesAlongColumns);
}

// Whether tiles with this code join pairs of bf16 from rows of weights in place.
bool ProductRunner::joins_rows(const PanelCode& code) const {
  return contraction_.multiplies_pairs && reads_in_place() && code.last_lanes == 0 && !transposes();
}

// Weights in place that are contiguous along k.
bool ProductRunner::transposes() const { return reads_in_place() && stack_.weights.column_stride != 1; }

// Of weights that are read in place, only the last panel is copied if it is narrower than a register tile. Packed weights are
// converted, if not by the tiles.
bool ProductRunner::is_copied(const Panel& panel) const {
  if (weights_.are_packed_ahead) return copied_type_ != panel_type_;
  return schedule_.copies_panels || panel.columns < code_of(panel.columns).columns;
}

char* ProductRunner::copied_panel(const Unit& unit, int64_t slot) const {
  return unit.panels + (schedule_.copies_panels ? slot * static_cast<int64_t>(panel_bytes_) : 0);
}

void ProductRunner::copy(const Unit& unit, const Panel& panel, int64_t slot) const {
  char* const to = copied_panel(unit, slot);
  if (weights_.source != nullptr)
    weights_.source->make_panel(unit.at.weights, unit.first_k, unit.count, panel.first_column, panel.columns, to);
  else if (!is_copied(panel))
    return;
  else if (weights_.are_packed_ahead)
    code_of(panel.columns).conversion.as<PanelCopyFunction>()(panel.weights, panel.to_next_k, to, unit.count);
  else
    copy_panel(panel.weights, panel.columns, entries_of(unit), to);
}

ProductRunner::Panel ProductRunner::at(const Unit& unit, const Panel& panel, int64_t slot) const {
  if (!is_copied(panel)) return panel;
  return {panel.first_column, panel.columns, copied_panel(unit, slot),
          code_of(panel.columns).columns * element_bytes(panel_type_)};
}

void ProductRunner::copy_panel(const char* from, int64_t columns, int64_t entries, char* to) const {
  const PanelCode& code = code_of(columns);
  copy_weights_(code.copy, from, columns, code.columns, entries, to);
}

// Register tiles of panels from a source write whole vectors.
bool ProductRunner::has_columns_of_code(const Panel& panel) const {
  return weights_.source == nullptr || panel.columns == columns_;
}

bool ProductRunner::is_direct(const Panel& panel) const {
  return has_columns_of_code(panel) && stack_.dst.column_stride == 1 && stack_.dst.dtype == sum_type_;
}

ProductRunner::Sums ProductRunner::sums_of(const Unit& unit, const Rows& rows, const Panel& panel) const {
  if (is_direct(panel)) {
    const int64_t row = stack_.dst.row_stride * dst_bytes_;
    return {unit.at.dst + rows.first * row + panel.first_column * dst_bytes_, row};
  }
  if (sums_row_bytes_ == 0) return {unit.tile, code_of(panel.columns).columns * sum_bytes_};
  return {unit.sums + (rows.first - unit.first_row) * sums_row_bytes_ + (panel.first_column - unit.first_column) * sum_bytes_,
          sums_row_bytes_};
}

// In place, or a copy of the tile's part.
ProductRunner::Sums ProductRunner::bias_of(const Unit& unit, const Rows& rows, const Panel& panel) const {
  const kernel::MatrixStack& bias = stack_.bias;
  const int64_t columns = code_of(panel.columns).columns;
  const Steps steps{bias.row_stride * bias_bytes_, bias.column_stride * bias_bytes_}, dense{columns * sum_bytes_, sum_bytes_};
  const char* const at = unit.at.bias + rows.first * steps.row + panel.first_column * steps.column;
  if (has_columns_of_code(panel) && bias.column_stride == 1 && bias.dtype == bias_type_)
    return {const_cast<char*>(at), steps.row};
  copy_bias_(at, steps, unit.bias, dense, rows.count, panel.columns);
  return {unit.bias, dense.row};
}

// Whether one call computes all tiles of the same height: sums are in dst, and all rows have the same bias.
bool ProductRunner::runs_tiles_together(const Panel& panel) const {
  const kernel::MatrixStack& bias = stack_.bias;
  const bool has_one_bias = !stack_.has_bias || (bias.row_stride == 0 && bias.column_stride == 1 && bias.dtype == bias_type_);
  return weights_.source == nullptr && is_direct(panel) && has_one_bias && !contraction_.adds && !contraction_.integers;
}

void ProductRunner::run_tiles(const Unit& unit, const Panel& panel) const {
  const int64_t rows = unit.end_row - unit.first_row, tiles = parts(rows, schedule_.rows), taller = rows % tiles;
  for_each_rows(unit, [&](const Rows& tile, int64_t slot) {
    if (slot != 0 && slot != taller) return;
    const bool is_last = unit.first_k + unit.count == k_;
    const Sums added = is_last && stack_.has_bias ? bias_of(unit, tile, panel) : Sums{nullptr, 0};
    const int64_t count = slot < taller ? taller : tiles - taller;
    call_tiles(unit, at(unit, tile, slot), panel, sums_of(unit, tile, panel), added.at, added.to_next_row, count);
  });
}

ColumnGroups ProductRunner::groups() const { return row_source_ == nullptr ? ColumnGroups{} : row_source_->groups(); }

// Bytes.
int64_t ProductRunner::first_group(const Panel& panel) const {
  const auto [columns, step] = groups();
  return columns == 0 ? 0 : panel.first_column / columns * step * sum_bytes_;
}

void ProductRunner::call_tiles(const Unit& unit, const Rows& rows, const Panel& panel, const Sums& sums, const char* added,
                               int64_t added_row, int64_t tiles) const {
  const bool has_slots = schedule_.copies_rows || finds_rows();
  const int64_t part = finds_rows() ? row_source_->part() : unit.count, next_rows = rows.count * sums.to_next_row;
  const ProductStrides strides{.src_row = rows.to_next_row,
                               .src_k = rows.to_next_k,
                               .weights_k = panel.to_next_k,
                               .dst_row = sums.to_next_row,
                               .bias_row = added_row,
                               .next_tile = schedule_.panels_first ? next_rows : panel.columns * sum_bytes_,
                               .parts = unit.count / part,
                               .tiles = tiles,
                               .src_tile = has_slots ? static_cast<int64_t>(rows_bytes_) : rows.count * rows.to_next_row,
                               .dst_tile = next_rows,
                               .first_group = first_group(panel)};
  const auto function = code_of(panel.columns).tiles[static_cast<size_t>(rows.count)].as<ProductTileFunction>();
  function(rows.src, panel.weights, sums.at, added, part, &strides, unit.first_k == 0 ? 0 : 1);
}

// The part of dst that register tiles cannot write is copied out, and in before that if sums are carried over through dst.
void ProductRunner::run_tile(const Unit& unit, const Rows& rows, const Panel& panel) const {
  const Steps steps{stack_.dst.row_stride * dst_bytes_, stack_.dst.column_stride * dst_bytes_};
  char* const result = unit.at.dst + rows.first * steps.row + panel.first_column * steps.column;
  const bool is_first = unit.first_k == 0, is_last = unit.first_k + unit.count == k_;
  const bool goes_through_dst = !is_direct(panel) && sums_row_bytes_ == 0;
  const Sums sums = sums_of(unit, rows, panel);
  if (goes_through_dst && (!is_first || contraction_.adds))
    copy_in_(result, steps, sums.at, {sums.to_next_row, sum_bytes_}, rows.count, panel.columns);
  Sums added{nullptr, 0};
  if (contraction_.adds)
    added = sums;
  else if (is_last && stack_.has_bias)
    added = bias_of(unit, rows, panel);
  call_tiles(unit, rows, panel, sums, contraction_.integers ? nullptr : added.at, added.to_next_row, 1);
  if (is_direct(panel) || !(goes_through_dst || is_last)) return;
  if (!contraction_.integers)
    return copy_out_(sums.at, {sums.to_next_row, sum_bytes_}, result, steps, rows.count, panel.columns);
  const float* const scales = unit.at.scales + (contraction_.integers->scales.size() == 1 ? 0 : panel.first_column);
  scale_out_(sums.at, sums.to_next_row, scales, added.at, added.to_next_row, result, steps, rows.count, panel.columns);
}

}  // namespace lamina::cpu
