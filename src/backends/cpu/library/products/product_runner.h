// Runs a matrix product under a schedule: units of dst on threads, with the functions of product/emit_product.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "backends/cpu/code/jit.h"
#include "backends/cpu/library/products/matrix_copy.h"
#include "backends/cpu/library/products/sources.h"
#include "backends/cpu/library/products/weights_copy.h"
#include "backends/cpu/product/product_code.h"
#include "backends/cpu/product/product_schedule.h"
#include "backends/cpu/threads/executor.h"
#include "kernels/contraction.h"

namespace lamina::cpu {

// Where the weights of a product come from. By default, they are a matrix in memory.
struct ProductWeights {
  bool are_packed_ahead = false;        // `run` gets those that `pack` wrote
  const PanelSource* source = nullptr;  // must outlive the runner; the schedule copies panels
  // Extents of the matrix that `pack` wrote, whose first entries the product reads; 0: those of the product. The schedule has
  // the vectors of the one that packed it.
  int64_t packed_k = 0, packed_n = 0;
};

class ProductRunner {
 public:
  // Compiles for `machine`, or gets the code from the cache. Factors, bias and dst have the type of the sums or, if that is not
  // f64, f32 or 16 bits; or the factors are of integers. The schedule is legal. `threads`: at most.
  // `rows`: in place of a matrix src, whose batch strides are then 0; it must outlive the runner. The schedule copies rows, or
  // its k_block consists of whole parts.
  ProductRunner(kernel::Contraction contraction, const Machine& machine, const ProductSchedule& schedule, int threads,
                const ProductWeights& weights = {}, const RowSource* rows = nullptr);

  ProductRunner(const ProductRunner&) = delete;
  ProductRunner& operator=(const ProductRunner&) = delete;

  const ProductSchedule& schedule() const { return schedule_; }
  const kernel::MatmulStack& matrices() const { return stack_; }
  size_t scratch_bytes() const { return static_cast<size_t>(threads_) * thread_bytes_; }
  // `scratch`: scratch_bytes() bytes, 64-byte aligned. `bias` may be null if there is none.
  void run(const void* src, const void* weights, const void* bias, void* dst, void* scratch, const Executor& executor) const {
    run(src, weights, bias, dst, scratch, executor, nullptr);
  }
  // Calls `ended`, unless it is null, after each unit, on its thread: rows and columns of this entry of the batch.
  using UnitEnded = std::function<void(int64_t entry, int64_t first_row, int64_t rows, int64_t first_column, int64_t columns)>;
  void run(const void* src, const void* weights, const void* bias, void* dst, void* scratch, const Executor& executor,
           const UnitEnded& ended) const;
  int64_t unit_count() const;

  // 0 if weights are not packed ahead.
  size_t packed_bytes() const {
    return weights_.are_packed_ahead ? static_cast<size_t>(packed_matrices_ * packed_matrix_bytes_) : 0;
  }
  // `packed`: packed_bytes() bytes, 64-byte aligned.
  void pack(const void* weights, void* packed, const Executor& executor) const;

 private:
  struct Memory {
    const char *src, *weights, *bias;
    char* dst;
    const float* scales;  // of integers
  };
  struct Unit;
  struct Rows;
  struct Panel;
  struct Sums;
  struct Columns {
    int64_t first, end;
  };
  // The code for panels of one width: register tiles by their number of rows, those that occur, the copy from the matrix, and
  // the conversion of a packed panel.
  struct PanelCode {
    int64_t columns = 0;  // of whole vectors
    int last_lanes = 0;   // as in ProductTile
    std::vector<CompiledCode> tiles;
    CompiledCode copy, conversion;
  };
  static int64_t parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }
  void plan_units();
  void plan_packed_weights();
  void plan_scratch();
  size_t found_bytes() const;
  void check_types() const;
  void compile(PanelCode& code, int64_t columns) const;
  void compile_panel_copies(PanelCode& code, int vectors) const;
  void compile_copies();
  void compile_tile(PanelCode& code, int64_t rows) const;
  // Of the panel with this number of columns.
  const PanelCode& code_of(int64_t columns) const;
  Memory at_entry(const Memory& memory, int64_t entry) const;
  void run_unit(Unit unit) const;
  void run_by_panels(const Unit& unit) const;
  void run_by_rows(const Unit& unit) const;
  void run_tile(const Unit& unit, const Rows& rows, const Panel& panel) const;
  bool runs_tiles_together(const Panel& panel) const;
  void run_tiles(const Unit& unit, const Panel& panel) const;
  void call_tiles(const Unit& unit, const Rows& rows, const Panel& panel, const Sums& sums, const char* added,
                  int64_t added_row, int64_t tiles) const;
  template <typename Visit>
  void for_each_rows(const Unit& unit, const Visit& visit) const;
  template <typename Visit>
  void for_each_panel(const Unit& unit, const Visit& visit) const;
  Panel panel_of(const Unit& unit, int64_t column, int64_t columns) const;
  int64_t packed_columns(int64_t column) const;
  // Copies what the schedule copies, or finds rows, in a slot of scratch memory; and where they are then.
  void copy(const Unit& unit, const Rows& rows, int64_t slot) const;
  void copy(const Unit& unit, const Panel& panel, int64_t slot) const;
  Rows at(const Unit& unit, const Rows& rows, int64_t slot) const;
  Panel at(const Unit& unit, const Panel& panel, int64_t slot) const;
  bool reads_in_place() const { return !weights_.are_packed_ahead && !schedule_.copies_panels; }  // the weights
  bool joins_rows(const PanelCode& code) const;
  bool transposes() const;
  int64_t bytes_ahead() const;
  bool is_copied(const Panel& panel) const;
  char* copied_panel(const Unit& unit, int64_t slot) const;
  // `entries` of k.
  void copy_panel(const char* from, int64_t columns, int64_t entries, char* to) const;
  int64_t entries_of(const Unit& unit) const;
  bool finds_rows() const { return row_source_ != nullptr && !schedule_.copies_rows; }
  ColumnGroups groups() const;
  int64_t first_group(const Panel& panel) const;
  bool has_columns_of_code(const Panel& panel) const;
  bool is_direct(const Panel& panel) const;
  Sums sums_of(const Unit& unit, const Rows& rows, const Panel& panel) const;
  Sums bias_of(const Unit& unit, const Rows& rows, const Panel& panel) const;

  kernel::Contraction contraction_;
  const kernel::MatmulStack& stack_;
  Machine machine_;
  ProductSchedule schedule_;
  int threads_;
  ProductWeights weights_;
  const RowSource* row_source_;
  DataType sum_type_, bias_type_;  // in register tiles
  DataType panel_type_;            // of the panels that register tiles read
  DataType copied_type_;           // of the panels that are copied from the matrix, or packed
  int64_t k_;                      // elements, of `entries_` entries each
  int64_t entries_;
  int64_t sum_bytes_, src_bytes_, weights_bytes_, bias_bytes_, dst_bytes_;  // of an entry
  int64_t columns_;                                                         // of a panel
  PanelCode whole_, last_;                                                  // panels; the last one if it has fewer columns
  MatrixCopy copy_src_, copy_bias_, copy_in_, copy_out_;                    // the last two: dst
  WeightsCopy copy_weights_;
  ScaledCopy scale_out_;                // dst, of integers
  std::vector<Columns> column_blocks_;  // in the order in which threads take them
  bool is_worth_threads_ = false;
  int64_t packed_matrices_ = 1, packed_matrix_bytes_ = 0;
  Dims packed_strides_;           // from one matrix of packed weights to the next, in elements, per batch dim
  int64_t copied_row_bytes_ = 0;  // from one copied row of src to the next
  int64_t sums_row_bytes_ = 0;    // from one row of sums to the next; 0 if no sums are kept in scratch memory
  size_t rows_bytes_ = 0, all_rows_bytes_ = 0, panel_bytes_ = 0, all_panels_bytes_ = 0, tile_bytes_ = 0, thread_bytes_ = 0;
};

}  // namespace lamina::cpu
