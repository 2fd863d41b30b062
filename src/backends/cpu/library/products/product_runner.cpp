#include "backends/cpu/library/products/product_runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr size_t kLine = 64;

size_t whole_lines(int64_t bytes) { return (static_cast<size_t>(bytes) + kLine - 1) / kLine * kLine; }

// Distances between elements, in bytes.
struct Steps {
  int64_t row, column;
};

// Copies elements of 4 or 8 bytes.
template <typename Word>
void copy_words(const char* from, Steps from_steps, char* to, Steps to_steps, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    const char* source = from + row * from_steps.row;
    char* target = to + row * to_steps.row;
    for (int64_t column = 0; column < columns; ++column, source += from_steps.column, target += to_steps.column)
      std::memcpy(target, source, sizeof(Word));
  }
}

void copy_elements(const char* from, Steps from_steps, char* to, Steps to_steps, int64_t rows, int64_t columns,
                   int64_t element_bytes) {
  if (from_steps.column == element_bytes && to_steps.column == element_bytes) {
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(to + row * to_steps.row, from + row * from_steps.row, static_cast<size_t>(columns * element_bytes));
  } else if (element_bytes == sizeof(uint64_t)) {
    copy_words<uint64_t>(from, from_steps, to, to_steps, rows, columns);
  } else {
    copy_words<uint32_t>(from, from_steps, to, to_steps, rows, columns);
  }
}

}  // namespace

// Rows and columns of one entry of the batch, and some entries of k, on one thread.
struct ProductRunner::Unit {
  Memory at;  // of the entry
  int64_t first_row, end_row, first_column, end_column;
  char *panels, *rows, *tile, *bias;  // scratch memory: copied weights; copied rows of src; tiles of dst and of the bias
  int64_t first_k = 0, count = 0;
};

// Rows of src as a register tile reads them. Distances are in bytes.
struct ProductRunner::Rows {
  int64_t first, count;
  const char* src;
  int64_t to_next_row, to_next_k;
};

// The weights of as many columns as a register tile has.
struct ProductRunner::Panel {
  int64_t first_column, columns;
  const char* weights;
  int64_t to_next_k;  // bytes
};

ProductRunner::ProductRunner(kernel::Contraction contraction, const Machine& machine, const ProductSchedule& schedule,
                             int threads, const PanelSource* source)
    : contraction_(std::move(contraction)),
      stack_(contraction_.matrices),
      machine_(machine),
      schedule_(schedule),
      threads_(threads),
      source_(source),
      element_bytes_(bytes_of(stack_.dst.dtype, 1)),
      columns_(panel_columns(contraction_, schedule)) {
  for (const kernel::MatrixStack* matrix : {&stack_.src, &stack_.weights, &stack_.bias}) {
    const bool is_used = matrix != &stack_.bias || stack_.has_bias;
    LAMINA_CHECK(!is_used || matrix->dtype == stack_.dst.dtype, kernel::print(contraction_));
  }
  if (schedule_.copies_rows) {
    // An odd number of lines: neighbouring rows use different sets of a cache.
    copied_row_bytes_ = static_cast<int64_t>(whole_lines(schedule_.k_block * element_bytes_) | kLine);
    rows_bytes_ = static_cast<size_t>(schedule_.rows * copied_row_bytes_);
  }
  LAMINA_CHECK(source_ == nullptr || schedule_.copies_panels, kernel::print(contraction_));
  panel_bytes_ =
      whole_lines(source_ != nullptr ? source_->panel_bytes(schedule_.k_block) : schedule_.k_block * columns_ * element_bytes_);
  panels_bytes_ = panel_bytes_ * static_cast<size_t>(schedule_.copies_panels ? parts(schedule_.column_block, columns_) : 1);
  tile_bytes_ = whole_lines(schedule_.rows * columns_ * element_bytes_);
  thread_bytes_ = panels_bytes_ + rows_bytes_ + 2 * tile_bytes_;
  const double sums = static_cast<double>(stack_.products()) * static_cast<double>(stack_.m) * static_cast<double>(stack_.n);
  const double vectors = sums * static_cast<double>(stack_.k) * static_cast<double>(8 * element_bytes_) / schedule_.vector_bits;
  is_worth_threads_ = vectors * machine_.costs.operation > 2 * machine_.costs.wait;
  compile();
}

void ProductRunner::compile() {
  tiles_.resize(static_cast<size_t>(schedule_.rows) + 1);
  for (const int64_t rows : {std::min(schedule_.row_block, stack_.m), stack_.m % schedule_.row_block}) {
    if (rows == 0) continue;
    const int64_t tiles = parts(rows, schedule_.rows);
    compile_tile(rows / tiles);
    compile_tile(parts(rows, tiles));
  }
  if (!schedule_.copies_panels || source_ != nullptr) return;
  const kernel::MatrixStack& weights = stack_.weights;
  copies_columns_ = weights.row_stride == 1 && weights.column_stride != 1;
  if (!copies_columns_ && weights.column_stride != 1) return;
  const int64_t ahead = copies_columns_ ? schedule_.k_block : columns_;
  copy_ = compile_code(source_of(PanelCopy{.type = contraction_.sum_type(),
                                           .vector_bits = schedule_.vector_bits,
                                           .vectors = schedule_.vectors,
                                           .along_k = copies_columns_,
                                           .bytes_ahead = schedule_.prefetches ? ahead * element_bytes_ : 0}),
                       machine_);
}

void ProductRunner::compile_tile(int64_t rows) {
  CompiledCode& tile = tiles_[static_cast<size_t>(rows)];
  if (tile.memory != nullptr) return;
  const ProductTile of_floats{.type = contraction_.sum_type(),
                              .vector_bits = schedule_.vector_bits,
                              .rows = static_cast<int>(rows),
                              .vectors = schedule_.vectors,
                              .prefetches = schedule_.prefetches && !schedule_.copies_panels};
  tile = compile_code(source_ == nullptr ? source_of(of_floats) : source_->tile(of_floats), machine_);
}

void ProductRunner::run(const void* src, const void* weights, const void* bias, void* dst, void* scratch,
                        const Executor& executor) const {
  const Memory memory{static_cast<const char*>(src), static_cast<const char*>(weights), static_cast<const char*>(bias),
                      static_cast<char*>(dst)};
  const int64_t row_blocks = parts(stack_.m, schedule_.row_block), column_blocks = parts(stack_.n, schedule_.column_block);
  const Executor team = executor.at_most(is_worth_threads_ ? threads_ : 1);
  for_each_tile(stack_.products() * row_blocks * column_blocks, team, [&](int64_t unit, int thread) {
    const int64_t column = unit % column_blocks * schedule_.column_block;
    const int64_t row = unit / column_blocks % row_blocks * schedule_.row_block;
    char* const panels = static_cast<char*>(scratch) + static_cast<size_t>(thread) * thread_bytes_;
    char* const rows = panels + panels_bytes_;
    run_unit({at_entry(memory, unit / column_blocks / row_blocks), row, std::min(row + schedule_.row_block, stack_.m), column,
              std::min(column + schedule_.column_block, stack_.n), panels, rows, rows + rows_bytes_,
              rows + rows_bytes_ + tile_bytes_});
  });
}

ProductRunner::Memory ProductRunner::at_entry(const Memory& memory, int64_t entry) const {
  Memory at = memory;
  for (size_t d = stack_.batch.size(); d-- > 0; entry /= stack_.batch[d]) {
    const int64_t place = entry % stack_.batch[d] * element_bytes_;
    at.src += place * stack_.src.batch_strides[d];
    at.weights += place * stack_.weights.batch_strides[d];
    if (at.bias != nullptr) at.bias += place * stack_.bias.batch_strides[d];
    at.dst += place * stack_.dst.batch_strides[d];
  }
  return at;
}

// Tiles of almost equal height: the first ones have a row more.
void ProductRunner::run_unit(Unit unit) const {
  const int64_t rows = unit.end_row - unit.first_row, tiles = parts(rows, schedule_.rows), extra = rows % tiles;
  for (unit.first_k = 0; unit.first_k < stack_.k; unit.first_k += schedule_.k_block) {
    unit.count = std::min(schedule_.k_block, stack_.k - unit.first_k);
    copy_panels(unit);
    int64_t row = unit.first_row;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t of_tile = rows / tiles + (tile < extra ? 1 : 0);
      run_rows(unit, rows_of(unit, row, of_tile));
      row += of_tile;
    }
  }
}

void ProductRunner::run_rows(const Unit& unit, const Rows& rows) const {
  for (int64_t column = unit.first_column; column < unit.end_column; column += columns_)
    run_tile(unit, rows, panel_of(unit, column));
}

// If the schedule does not copy them, finds them in place.
ProductRunner::Rows ProductRunner::rows_of(const Unit& unit, int64_t row, int64_t count) const {
  const Steps steps{stack_.src.row_stride * element_bytes_, stack_.src.column_stride * element_bytes_};
  const char* const src = unit.at.src + row * steps.row + unit.first_k * steps.column;
  if (!schedule_.copies_rows) return {row, count, src, steps.row, steps.column};
  copy_elements(src, steps, unit.rows, {copied_row_bytes_, element_bytes_}, count, unit.count, element_bytes_);
  return {row, count, unit.rows, copied_row_bytes_, element_bytes_};
}

// Of weights that are read in place, only the last panel is copied if it is narrower than a register tile.
void ProductRunner::copy_panels(const Unit& unit) const {
  for (int64_t column = unit.first_column; column < unit.end_column; column += columns_) {
    const int64_t columns = std::min(columns_, unit.end_column - column);
    if (source_ != nullptr)
      source_->make_panel(unit.at.weights, unit.first_k, unit.count, column, columns, copied_panel(unit, column));
    else if (is_copied(columns))
      copy_panel(weights_at(unit, column), columns, unit.count, copied_panel(unit, column));
  }
}

const char* ProductRunner::weights_at(const Unit& unit, int64_t column) const {
  return unit.at.weights + (unit.first_k * stack_.weights.row_stride + column * stack_.weights.column_stride) * element_bytes_;
}

char* ProductRunner::copied_panel(const Unit& unit, int64_t column) const {
  return unit.panels +
         (schedule_.copies_panels ? (column - unit.first_column) / columns_ * static_cast<int64_t>(panel_bytes_) : 0);
}

ProductRunner::Panel ProductRunner::panel_of(const Unit& unit, int64_t column) const {
  const int64_t columns = std::min(columns_, unit.end_column - column);
  if (is_copied(columns)) return {column, columns, copied_panel(unit, column), columns_ * element_bytes_};
  return {column, columns, weights_at(unit, column), stack_.weights.row_stride * element_bytes_};
}

void ProductRunner::copy_panel(const char* from, int64_t columns, int64_t count, char* to) const {
  const Steps steps{stack_.weights.row_stride * element_bytes_, stack_.weights.column_stride * element_bytes_};
  if (copy_.address != nullptr && columns == columns_)
    return copy_.as<PanelCopyFunction>()(from, copies_columns_ ? steps.column : steps.row, to, count);
  if (columns < columns_) std::memset(to, 0, static_cast<size_t>(count * columns_ * element_bytes_));
  copy_elements(from, steps, to, {columns_ * element_bytes_, element_bytes_}, count, columns, element_bytes_);
}

// If dst is narrower than a register tile or its columns are not contiguous, its part is copied in and out. The same holds for
// the bias.
void ProductRunner::run_tile(const Unit& unit, const Rows& rows, const Panel& panel) const {
  const kernel::MatrixStack &dst = stack_.dst, &bias = stack_.bias;
  const Steps dense{columns_ * element_bytes_, element_bytes_};
  const Steps dst_steps{dst.row_stride * element_bytes_, dst.column_stride * element_bytes_};
  char* const result = unit.at.dst + rows.first * dst_steps.row + panel.first_column * dst_steps.column;
  const bool is_first = unit.first_k == 0, is_last = unit.first_k + unit.count == stack_.k;
  const bool is_whole = panel.columns == columns_, is_direct = is_whole && dst.column_stride == 1;
  if (!is_direct && (!is_first || contraction_.adds))
    copy_elements(result, dst_steps, unit.tile, dense, rows.count, panel.columns, element_bytes_);
  char* const sums = is_direct ? result : unit.tile;
  ProductStrides strides{rows.to_next_row, rows.to_next_k, panel.to_next_k, is_direct ? dst_steps.row : dense.row, dense.row};
  const char* added = nullptr;
  if (contraction_.adds) {
    added = sums;
    strides.bias_row = strides.dst_row;
  } else if (is_last && stack_.has_bias) {
    const Steps steps{bias.row_stride * element_bytes_, bias.column_stride * element_bytes_};
    added = unit.at.bias + rows.first * steps.row + panel.first_column * steps.column;
    strides.bias_row = steps.row;
    if (!is_whole || bias.column_stride != 1) {
      copy_elements(added, steps, unit.bias, dense, rows.count, panel.columns, element_bytes_);
      added = unit.bias;
      strides.bias_row = dense.row;
    }
  }
  const auto function = tiles_[static_cast<size_t>(rows.count)].as<ProductTileFunction>();
  function(rows.src, panel.weights, sums, added, unit.count, &strides, is_first ? 0 : 1);
  if (!is_direct) copy_elements(sums, dense, result, dst_steps, rows.count, panel.columns, element_bytes_);
}

}  // namespace lamina::cpu
