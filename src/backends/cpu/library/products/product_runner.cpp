#include "backends/cpu/library/products/product_runner.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/dispatch/next_panel.h"
#include "backends/cpu/product/tuning.h"
#include "backends/cpu/program/tuning.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using kernel::Contraction;

DataType storage_of(kernel::Type sums) {
  return sums == kernel::Type::f64 ? DataType::f64 : sums == kernel::Type::s32 ? DataType::s32 : DataType::f32;
}

// The type of panels whose elements are as wide as in the matrix. Pairs of bf16 are words.
DataType type_of_panels(const Contraction& contraction) {
  return contraction.multiplies_pairs ? DataType::f32 : contraction.matrices.weights.dtype;
}

double multiply_adds(const ProductProgram& program, int vector_bits) {
  const kernel::MatmulStack& of = program.matrices;
  const double sums = static_cast<double>(of.products()) * static_cast<double>(of.m) * static_cast<double>(of.n);
  return sums * static_cast<double>(program.k) * static_cast<double>(8 * bytes_of(program.sum_type, 1)) / vector_bits;
}

// Whether register tiles round their sums, which are whole, and write them to dst.
bool stores_results(const ProductProgram& program, const ProductWeights& weights) {
  const DataType dst = program.matrices.dst.dtype;
  return (dst == DataType::bf16 || dst == DataType::f16) && program.matrices.dst.column_stride == 1 &&
         program.k_block >= program.k && !program.adds && !program.multiplies_integers && weights.source == nullptr &&
         weights.tile == nullptr;
}

// `has_rows`: from a source.
ProductProgram program_of(const Contraction& contraction, const Machine& machine, const ProductSchedule& schedule, int threads,
                          const ProductWeights& weights, bool has_rows) {
  const DataType sums = storage_of(contraction.sum_type());
  ProductProgram program{.matrices = contraction.matrices,
                         .k = contraction.elements_of_k(),
                         .entries = contraction.entries(),
                         .adds = contraction.adds,
                         .multiplies_pairs = contraction.multiplies_pairs,
                         .multiplies_integers = contraction.integers.has_value(),
                         .sum_type = sums,
                         .bias_type = contraction.integers ? DataType::f32 : sums,
                         .panel_type = schedule.copies_panels ? sums : type_of_panels(contraction),
                         .threads = threads,
                         .rows = schedule.rows,
                         .vectors = schedule.vectors,
                         .columns = panel_columns(contraction, schedule),
                         .k_block = schedule.k_block,
                         .row_block = schedule.row_block,
                         .column_block = schedule.column_block,
                         .copies_panels = schedule.copies_panels,
                         .panels_first = schedule.panels_first,
                         .copies_rows = schedule.copies_rows,
                         .copies_next = schedule.copies_next && !weights.are_packed_ahead && weights.source == nullptr &&
                                        weights.tile == nullptr && !has_rows,
                         .are_packed_ahead = weights.are_packed_ahead,
                         .packed_k = weights.packed_k,
                         .packed_n = weights.packed_n};
  program.stored_type = stores_results(program, weights) ? contraction.matrices.dst.dtype : sums;
  program.copied_type = weights.are_packed_ahead ? type_of_panels(contraction) : program.panel_type;
  program.splits_panels =
      schedule.splits_panels && weights.are_packed_ahead && !has_rows && program.copied_type == program.panel_type;
  program.is_worth_threads = is_worth_threads(multiply_adds(program, schedule.vector_bits), machine);
  if (!contraction.integers) return program;
  program.scales = contraction.integers->scales;
  program.scale_strides = contraction.integers->scale_strides;
  return program;
}

}  // namespace

MatrixCopy matrix_copy(DataType from, DataType to, const Machine& machine, int vector_bits) {
  CompiledCode convert;
  if (from != to) convert = compile_code(source_of(RowConversion{.from = from, .to = to, .vector_bits = vector_bits}), machine);
  return {bytes_of(from, 1), bytes_of(to, 1), std::move(convert)};
}

MatrixCopy copy_of_integers(DataType from, int32_t zero_point, const Machine& machine, int vector_bits) {
  const RowConversion conversion{.from = from, .to = DataType::s32, .zero_point = zero_point, .vector_bits = vector_bits};
  return {1, sizeof(int16_t), compile_code(source_of(conversion), machine)};
}

// The program and the code of a product.
class ProductRunner::Compiler {
 public:
  Compiler(const Contraction& contraction, const Machine& machine, const ProductSchedule& schedule, int threads,
           const ProductWeights& weights, const RowSource* rows, const ResultMap& map)
      : contraction_(contraction),
        stack_(contraction.matrices),
        machine_(machine),
        schedule_(schedule),
        weights_(weights),
        rows_(rows),
        map_(map),
        program_(program_of(contraction, machine, schedule, threads, weights, rows != nullptr)) {
    check_types();
  }

  const ProductProgram& program() const { return program_; }

  ProductCode code() const {
    ProductCode code;
    const int64_t rest = stack_.n % program_.columns;
    if (stack_.n >= program_.columns || weights_.source != nullptr) code.whole = panels_of(program_.columns);
    if (rest > 0 && weights_.source == nullptr) code.last = panels_of(rest);
    code.copy_weights = copy_of_weights();
    const int bits = schedule_.vector_bits;
    if (stack_.has_bias) code.copy_bias = matrix_copy(stack_.bias.dtype, program_.bias_type, machine_, bits);
    if (const auto& integers = contraction_.integers) {
      code.copy_src = copy_of_integers(stack_.src.dtype, integers->src_zero_point, machine_, bits);
      const ScaledRow row{.to = stack_.dst.dtype, .has_one_scale = integers->scales.size() == 1, .vector_bits = bits};
      code.scale_out = {bytes_of(row.to, 1), compile_code(source_of(row), machine_)};
      return code;
    }
    const DataType sums = program_.sum_type;
    code.copy_src = matrix_copy(stack_.src.dtype, contraction_.multiplies_pairs ? stack_.src.dtype : sums, machine_, bits);
    code.copy_in = matrix_copy(sums, sums, machine_, bits);
    code.copy_out = matrix_copy(sums, stack_.dst.dtype, machine_, bits);
    return code;
  }

 private:
  void check_types() const;

  WeightsCopyProgram weights_program() const {
    return {.matrix = stack_.weights,
            .to = program_.copied_type,
            .entries = program_.entries,
            .multiplies_pairs = contraction_.multiplies_pairs,
            .zero_point = zero_point()};
  }
  WeightsCopy copy_of_weights() const {
    MatrixCopy convert;
    if (program_.entries == 1)
      convert = matrix_copy(stack_.weights.dtype, program_.copied_type, machine_, schedule_.vector_bits);
    return {weights_program(), std::move(convert)};
  }
  int32_t zero_point() const { return contraction_.integers ? contraction_.integers->weights_zero_point : 0; }

  ProductCode::PanelCode panels_of(int64_t columns) const {
    ProductCode::PanelCode code;
    const int64_t lanes = program_.columns / schedule_.vectors, vectors = parts(columns, lanes);
    code.columns = vectors * lanes;
    code.tiles.resize(static_cast<size_t>(schedule_.rows) + 1);
    for (const int64_t rows : {std::min(schedule_.row_block, stack_.m), stack_.m % schedule_.row_block}) {
      if (rows == 0) continue;
      const int64_t tiles = parts(rows, schedule_.rows);
      for (const int64_t of_tile : {rows / tiles, parts(rows, tiles)}) {
        CompiledCode& tile = code.tiles[static_cast<size_t>(of_tile)];
        if (!tile) tile = tile_of(of_tile, code.columns, static_cast<int>(columns % lanes));
      }
    }
    if (weights_.source == nullptr && (schedule_.copies_panels || weights_.are_packed_ahead))
      add_panel_copies(code, static_cast<int>(vectors));
    return code;
  }
  void add_panel_copies(ProductCode::PanelCode& code, int vectors) const;
  CompiledCode tile_of(int64_t rows, int64_t columns, int last_lanes) const;

  bool reads_in_place() const { return !weights_.are_packed_ahead && !schedule_.copies_panels; }
  bool transposes() const { return reads_in_place() && stack_.weights.column_stride != 1; }
  bool finds_rows() const { return rows_ != nullptr && !schedule_.copies_rows; }
  ColumnGroups groups() const { return rows_ == nullptr ? ColumnGroups{} : rows_->groups(); }
  int64_t bytes_ahead() const;
  int64_t bytes_of_group() const;
  bool is_dense() const;
  int lines_of_next(const ProductTile& tile) const;

  const Contraction& contraction_;
  const kernel::MatmulStack& stack_;
  const Machine& machine_;
  const ProductSchedule& schedule_;
  const ProductWeights& weights_;
  const RowSource* rows_;
  const ResultMap& map_;
  const ProductProgram program_;
};

void ProductRunner::Compiler::check_types() const {
  const DataType sums = program_.sum_type;
  for (const kernel::MatrixStack* matrix : {&stack_.src, &stack_.weights, &stack_.bias, &stack_.dst}) {
    if (matrix == &stack_.bias && !stack_.has_bias) continue;
    const bool is_integer = contraction_.integers && is_byte_integer(matrix->dtype);
    LAMINA_CHECK(is_integer || (sums == DataType::f64) == (matrix->dtype == DataType::f64), kernel::print(contraction_));
  }
  LAMINA_CHECK(stack_.src.dtype == sums || schedule_.copies_rows || contraction_.multiplies_pairs, kernel::print(contraction_));
  LAMINA_CHECK(groups().columns == 0 || (finds_rows() && weights_.source == nullptr), kernel::print(contraction_));
  LAMINA_CHECK(!transposes() || !finds_rows(), kernel::print(contraction_));
  LAMINA_CHECK(!finds_rows() || schedule_.k_block % rows_->part() == 0, kernel::print(contraction_));
  LAMINA_CHECK(stack_.dst.dtype == sums || !contraction_.adds, kernel::print(contraction_));
  LAMINA_CHECK(weights_.source == nullptr || schedule_.copies_panels, kernel::print(contraction_));
  LAMINA_CHECK(map_.is_empty() || may_map_results(contraction_, weights_), kernel::print(contraction_));
}

// The copy is none if the matrix is contiguous along neither axis.
void ProductRunner::Compiler::add_panel_copies(ProductCode::PanelCode& code, int vectors) const {
  const WeightsCopyProgram copy = weights_program();
  const int64_t row_of_panel = program_.columns * bytes_of(stack_.weights.dtype, 1);
  const int64_t ahead = copy.is_along_k() ? product_tuning::kBytesAlongK : row_of_panel;
  if (copy.is_along_k() || stack_.weights.column_stride == 1)
    code.copy =
        compile_code(source_of(PanelCopy{.from = copy.is_along_k() ? type_of_panels(contraction_) : stack_.weights.dtype,
                                         .to = program_.copied_type,
                                         .zero_point = zero_point(),
                                         .joins_rows = contraction_.multiplies_pairs && !copy.is_along_k(),
                                         .vector_bits = schedule_.vector_bits,
                                         .vectors = program_.splits_panels ? 1 : vectors,
                                         .along_k = copy.is_along_k(),
                                         .bytes_ahead = schedule_.prefetches ? ahead : 0,
                                         .prefetches_to_first = schedule_.prefetches_to_first && !weights_.are_packed_ahead}),
                     machine_);
  if (program_.copied_type == program_.panel_type) return;
  code.conversion = compile_code(source_of(PanelCopy{.from = program_.copied_type,
                                                     .to = program_.panel_type,
                                                     .zero_point = zero_point(),
                                                     .is_paired = true,
                                                     .vector_bits = schedule_.vector_bits,
                                                     .vectors = vectors,
                                                     .along_k = false,
                                                     .bytes_ahead = 0}),
                                 machine_);
}

// `columns`: of whole vectors. `last_lanes`: as in ProductTile. Tiles may join pairs of bf16 from rows of weights in place.
CompiledCode ProductRunner::Compiler::tile_of(int64_t rows, int64_t columns, int last_lanes) const {
  const bool joins_rows = contraction_.multiplies_pairs && reads_in_place() && last_lanes == 0 && !transposes();
  ProductTile of_floats{.type = contraction_.sum_type(),
                        .weights = joins_rows ? stack_.weights.dtype : program_.panel_type,
                        .zero_point = zero_point(),
                        .vector_bits = schedule_.vector_bits,
                        .rows = static_cast<int>(rows),
                        .vectors = static_cast<int>(columns * schedule_.vectors / program_.columns),
                        .stored = program_.sum_type == DataType::f32 ? program_.stored_type : DataType::f32,
                        .last_lanes = last_lanes,
                        .multiplies_pairs = contraction_.multiplies_pairs,
                        .bytes_ahead = bytes_ahead(),
                        .prefetches_to_first = schedule_.prefetches_to_first,
                        .is_dense = is_dense(),
                        .splits_panels = program_.splits_panels,
                        .copies_next = program_.copies_next,
                        .copied = stack_.weights.dtype,
                        .along_k = transposes() && last_lanes == 0,
                        .has_pointers = finds_rows(),
                        .groups = groups(),
                        .map = map_};
  of_floats.lines_of_next = lines_of_next(of_floats);
  return compile_code(weights_.tile == nullptr ? source_of(of_floats) : weights_.tile(of_floats), machine_);
}

// Rows that are copied or found, and panels, have no gaps. Panels that are packed for more columns may be wider than a tile.
bool ProductRunner::Compiler::is_dense() const {
  const int64_t element = bytes_of(program_.sum_type, 1);
  const int64_t src_k = finds_rows()            ? rows_->to_next_k()
                        : schedule_.copies_rows ? element
                                                : stack_.src.column_stride * bytes_of(stack_.src.dtype, program_.entries);
  return src_k == element && !reads_in_place() && program_.packed_n == 0;
}

// For a step of the tile, if all tiles of the unit prefetch the next panel together.
int ProductRunner::Compiler::lines_of_next(const ProductTile& tile) const {
  if (!schedule_.prefetches_next) return 0;
  const int64_t tiles = parts(std::min(schedule_.row_block, stack_.m), schedule_.rows);
  const int64_t row_bytes =
      tile.vectors * (tile.vector_bits / (8 * bytes_of(program_.sum_type, 1))) * element_bytes(tile.weights);
  return static_cast<int>(parts(prefetched_for_entry(row_bytes, tiles) * entries_of_step(tile), tuning::kLine));
}

// Along a packed panel, along k, or in the same row of one of the next panels.
int64_t ProductRunner::Compiler::bytes_ahead() const {
  if (!schedule_.prefetches || schedule_.prefetches_next) return 0;
  if (weights_.are_packed_ahead && program_.copied_type != program_.panel_type) return 0;
  if (weights_.are_packed_ahead) return product_tuning::kBytesOfPanelAhead / (program_.splits_panels ? program_.vectors : 1);
  if (!reads_in_place()) return 0;
  if (transposes()) return bytes_of_group();
  const int64_t row_of_panel = program_.columns * bytes_of(stack_.weights.dtype, 1);
  return std::max(row_of_panel, tuning::is_line(schedule_.vector_bits) ? product_tuning::kBytesAlongColumnsOfLines
                                                                       : product_tuning::kBytesAlongColumns);
}

// Of each column, for tiles that transpose weights.
int64_t ProductRunner::Compiler::bytes_of_group() const {
  const int64_t most = machine_.caches.first / (product_tuning::kShareOfGroup * program_.columns);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(most, schedule_.vector_bits / 8))));
}

ProductRunner::ProductRunner(const Compiler& compiler, const ProductSchedule& schedule, const ProductWeights& weights,
                             const RowSource* rows)
    : ProductDispatch(compiler.program(), compiler.code(), weights.source, rows), schedule_(schedule) {}

ProductRunner::ProductRunner(const kernel::Contraction& contraction, const Machine& machine, const ProductSchedule& schedule,
                             int threads, const ProductWeights& weights, const RowSource* rows, const ResultMap& map)
    : ProductRunner(Compiler(contraction, machine, schedule, threads, weights, rows, map), schedule, weights, rows) {}

bool may_map_results(const Contraction& c, const ProductWeights& weights) {
  return weights.are_packed_ahead && weights.source == nullptr && weights.tile == nullptr && !c.adds && !c.integers &&
         c.matrices.dst.column_stride == 1 && c.matrices.dst.dtype == storage_of(c.sum_type());
}

}  // namespace lamina::cpu
