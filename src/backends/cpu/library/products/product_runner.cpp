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
                             int threads, const ProductWeights& weights)
    : contraction_(std::move(contraction)),
      stack_(contraction_.matrices),
      machine_(machine),
      schedule_(schedule),
      threads_(threads),
      weights_(weights),
      element_bytes_(bytes_of(stack_.dst.dtype, 1)),
      columns_(panel_columns(contraction_, schedule)) {
  for (const kernel::MatrixStack* matrix : {&stack_.src, &stack_.weights, &stack_.bias}) {
    const bool is_used = matrix != &stack_.bias || stack_.has_bias;
    LAMINA_CHECK(!is_used || matrix->dtype == stack_.dst.dtype, kernel::print(contraction_));
  }
  const int64_t lanes = columns_ / schedule_.vectors, rest = parts(stack_.n % columns_, lanes);
  LAMINA_CHECK(weights_.source == nullptr || schedule_.copies_panels, kernel::print(contraction_));
  if (stack_.n >= columns_ || rest == schedule_.vectors || weights_.source != nullptr) compile(whole_, schedule_.vectors);
  if (rest > 0 && rest < schedule_.vectors && weights_.source == nullptr) compile(last_, static_cast<int>(rest));
  plan_packed_weights();
  plan_scratch();
  const double sums = static_cast<double>(stack_.products()) * static_cast<double>(stack_.m) * static_cast<double>(stack_.n);
  const double vectors = sums * static_cast<double>(stack_.k) * static_cast<double>(8 * element_bytes_) / schedule_.vector_bits;
  is_worth_threads_ = vectors * machine_.costs.operation > 2 * machine_.costs.wait;
}

void ProductRunner::plan_packed_weights() {
  const int64_t rest = stack_.n % columns_, columns = stack_.n - rest + (rest == 0 ? 0 : code_of(rest).columns);
  packed_matrix_bytes_ = static_cast<int64_t>(whole_lines(stack_.k * columns * element_bytes_));
  packed_strides_ = stack_.weights.batch_strides;
  for (size_t d = packed_strides_.size(); d-- > 0;) {
    if (packed_strides_[d] == 0) continue;
    packed_strides_[d] = packed_matrices_ * packed_matrix_bytes_ / element_bytes_;
    packed_matrices_ *= stack_.batch[d];
  }
}

void ProductRunner::plan_scratch() {
  const auto slots = [](int64_t extent, int64_t part) { return static_cast<size_t>(parts(extent, part)); };
  if (schedule_.copies_rows) {
    // An odd number of lines: neighbouring rows use different sets of a cache.
    copied_row_bytes_ = static_cast<int64_t>(whole_lines(schedule_.k_block * element_bytes_) | kLine);
    rows_bytes_ = static_cast<size_t>(schedule_.rows * copied_row_bytes_);
    all_rows_bytes_ =
        rows_bytes_ * (schedule_.panels_first ? slots(std::min(schedule_.row_block, stack_.m), schedule_.rows) : 1);
  }
  if (!weights_.are_packed_ahead) {
    panel_bytes_ = whole_lines(weights_.source != nullptr ? weights_.source->panel_bytes(schedule_.k_block)
                                                          : schedule_.k_block * columns_ * element_bytes_);
    const bool keeps_all = schedule_.copies_panels && !schedule_.panels_first;
    all_panels_bytes_ = panel_bytes_ * (keeps_all ? slots(schedule_.column_block, columns_) : 1);
  }
  tile_bytes_ = whole_lines(schedule_.rows * columns_ * element_bytes_);
  thread_bytes_ = all_panels_bytes_ + all_rows_bytes_ + 2 * tile_bytes_;
}

void ProductRunner::compile(PanelCode& code, int vectors) const {
  code.columns = columns_ / schedule_.vectors * vectors;
  code.tiles.resize(static_cast<size_t>(schedule_.rows) + 1);
  for (const int64_t rows : {std::min(schedule_.row_block, stack_.m), stack_.m % schedule_.row_block}) {
    if (rows == 0) continue;
    const int64_t tiles = parts(rows, schedule_.rows);
    compile_tile(code, rows / tiles);
    compile_tile(code, parts(rows, tiles));
  }
  const bool along_k = stack_.weights.row_stride == 1 && stack_.weights.column_stride != 1;
  if (weights_.source != nullptr || !(schedule_.copies_panels || weights_.are_packed_ahead)) return;
  if (!along_k && stack_.weights.column_stride != 1) return;
  const int64_t ahead = along_k ? product_tuning::kBytesAlongK : columns_ * element_bytes_;
  code.copy = compile_code(source_of(PanelCopy{.type = contraction_.sum_type(),
                                               .vector_bits = schedule_.vector_bits,
                                               .vectors = vectors,
                                               .along_k = along_k,
                                               .bytes_ahead = schedule_.prefetches ? ahead : 0}),
                           machine_);
}

void ProductRunner::compile_tile(PanelCode& code, int64_t rows) const {
  CompiledCode& tile = code.tiles[static_cast<size_t>(rows)];
  if (tile.memory != nullptr) return;
  const bool reads_in_place = !weights_.are_packed_ahead && !schedule_.copies_panels;
  const ProductTile of_floats{.type = contraction_.sum_type(),
                              .vector_bits = schedule_.vector_bits,
                              .rows = static_cast<int>(rows),
                              .vectors = static_cast<int>(code.columns * schedule_.vectors / columns_),
                              .prefetches = schedule_.prefetches && reads_in_place};
  tile = compile_code(weights_.source == nullptr ? source_of(of_floats) : weights_.source->tile(of_floats), machine_);
}

const ProductRunner::PanelCode& ProductRunner::code_of(int64_t columns) const {
  return columns <= last_.columns ? last_ : whole_;
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
    copy_panel(static_cast<const char*>(weights) + at * element_bytes_, std::min(columns_, stack_.n - column), stack_.k,
               static_cast<char*>(packed) + i / panels * packed_matrix_bytes_ + column * stack_.k * element_bytes_);
  });
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
    char* const rows = panels + all_panels_bytes_;
    char* const tile = rows + all_rows_bytes_;
    run_unit({at_entry(memory, unit / column_blocks / row_blocks), row, std::min(row + schedule_.row_block, stack_.m), column,
              std::min(column + schedule_.column_block, stack_.n), panels, rows, tile, tile + tile_bytes_});
  });
}

ProductRunner::Memory ProductRunner::at_entry(const Memory& memory, int64_t entry) const {
  Memory at = memory;
  const Dims& weights_strides = weights_.are_packed_ahead ? packed_strides_ : stack_.weights.batch_strides;
  for (size_t d = stack_.batch.size(); d-- > 0; entry /= stack_.batch[d]) {
    const int64_t place = entry % stack_.batch[d] * element_bytes_;
    at.src += place * stack_.src.batch_strides[d];
    at.weights += place * weights_strides[d];
    if (at.bias != nullptr) at.bias += place * stack_.bias.batch_strides[d];
    at.dst += place * stack_.dst.batch_strides[d];
  }
  return at;
}

void ProductRunner::run_unit(Unit unit) const {
  for (unit.first_k = 0; unit.first_k < stack_.k; unit.first_k += schedule_.k_block) {
    unit.count = std::min(schedule_.k_block, stack_.k - unit.first_k);
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
  const Steps steps{stack_.src.row_stride * element_bytes_, stack_.src.column_stride * element_bytes_};
  const int64_t rows = unit.end_row - unit.first_row, tiles = parts(rows, schedule_.rows), extra = rows % tiles;
  const char* src = unit.at.src + unit.first_row * steps.row + unit.first_k * steps.column;
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
  Panel panel{column, columns, unit.at.weights, stack_.weights.row_stride * element_bytes_};
  if (weights_.are_packed_ahead) {
    panel.to_next_k = code_of(panel.columns).columns * element_bytes_;
    panel.weights += column * stack_.k * element_bytes_ + unit.first_k * panel.to_next_k;
  } else {
    panel.weights += unit.first_k * panel.to_next_k + column * stack_.weights.column_stride * element_bytes_;
  }
  return panel;
}

void ProductRunner::copy(const Unit& unit, const Rows& rows, int64_t slot) const {
  if (!schedule_.copies_rows) return;
  copy_elements(rows.src, {rows.to_next_row, rows.to_next_k}, unit.rows + slot * static_cast<int64_t>(rows_bytes_),
                {copied_row_bytes_, element_bytes_}, rows.count, unit.count, element_bytes_);
}

ProductRunner::Rows ProductRunner::at(const Unit& unit, const Rows& rows, int64_t slot) const {
  if (!schedule_.copies_rows) return rows;
  return {rows.first, rows.count, unit.rows + slot * static_cast<int64_t>(rows_bytes_), copied_row_bytes_, element_bytes_};
}

// Of weights that are read in place, only the last panel is copied if it is narrower than a register tile.
bool ProductRunner::is_copied(const Panel& panel) const {
  return !weights_.are_packed_ahead && (schedule_.copies_panels || panel.columns < code_of(panel.columns).columns);
}

char* ProductRunner::copied_panel(const Unit& unit, int64_t slot) const {
  return unit.panels + (schedule_.copies_panels ? slot * static_cast<int64_t>(panel_bytes_) : 0);
}

void ProductRunner::copy(const Unit& unit, const Panel& panel, int64_t slot) const {
  if (weights_.source != nullptr)
    weights_.source->make_panel(unit.at.weights, unit.first_k, unit.count, panel.first_column, panel.columns,
                                copied_panel(unit, slot));
  else if (is_copied(panel))
    copy_panel(panel.weights, panel.columns, unit.count, copied_panel(unit, slot));
}

ProductRunner::Panel ProductRunner::at(const Unit& unit, const Panel& panel, int64_t slot) const {
  if (!is_copied(panel)) return panel;
  return {panel.first_column, panel.columns, copied_panel(unit, slot), code_of(panel.columns).columns * element_bytes_};
}

void ProductRunner::copy_panel(const char* from, int64_t columns, int64_t count, char* to) const {
  const PanelCode& code = code_of(columns);
  const Steps steps{stack_.weights.row_stride * element_bytes_, stack_.weights.column_stride * element_bytes_};
  if (code.copy.address != nullptr && columns == code.columns) {
    const bool along_k = steps.column != element_bytes_;
    return code.copy.as<PanelCopyFunction>()(from, along_k ? steps.column : steps.row, to, count);
  }
  if (columns < code.columns) std::memset(to, 0, static_cast<size_t>(count * code.columns * element_bytes_));
  copy_elements(from, steps, to, {code.columns * element_bytes_, element_bytes_}, count, columns, element_bytes_);
}

// If dst is narrower than a register tile or its columns are not contiguous, its part is copied in and out. The same holds for
// the bias.
void ProductRunner::run_tile(const Unit& unit, const Rows& rows, const Panel& panel) const {
  const kernel::MatrixStack &dst = stack_.dst, &bias = stack_.bias;
  const PanelCode& code = code_of(panel.columns);
  const Steps dense{code.columns * element_bytes_, element_bytes_};
  const Steps dst_steps{dst.row_stride * element_bytes_, dst.column_stride * element_bytes_};
  char* const result = unit.at.dst + rows.first * dst_steps.row + panel.first_column * dst_steps.column;
  const bool is_first = unit.first_k == 0, is_last = unit.first_k + unit.count == stack_.k;
  const bool is_whole = panel.columns == code.columns, is_direct = is_whole && dst.column_stride == 1;
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
  const auto function = code.tiles[static_cast<size_t>(rows.count)].as<ProductTileFunction>();
  function(rows.src, panel.weights, sums, added, unit.count, &strides, is_first ? 0 : 1);
  if (!is_direct) copy_elements(sums, dense, result, dst_steps, rows.count, panel.columns, element_bytes_);
}

}  // namespace lamina::cpu
