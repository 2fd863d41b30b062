// Runs a compiled matrix product: threads take units of dst (product/product_schedule.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/dispatch/factor_sources.h"
#include "backends/cpu/dispatch/matrix_copy.h"
#include "backends/cpu/dispatch/next_panel.h"
#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/dispatch/product_units.h"
#include "backends/cpu/dispatch/weights_copy.h"
#include "backends/cpu/program/compiled_code.h"
#include "backends/cpu/program/product_program.h"
#include "backends/cpu/threads/executor.h"

namespace lamina::cpu {

// The machine code of a product.
struct ProductCode {
  // The code for panels of one width: register tiles by their number of rows, those that occur, the copy from the matrix, and
  // the conversion of a packed panel.
  struct PanelCode {
    int64_t columns = 0;  // of whole vectors
    std::vector<CompiledCode> tiles;
    CompiledCode copy, conversion;

    void write(ProgramWriter& to) const;
    static PanelCode read(ProgramReader& from);
  };
  void write(ProgramWriter& to) const;
  static ProductCode read(ProgramReader& from);

  PanelCode whole, last;                              // panels; the last one if it has fewer columns
  MatrixCopy copy_src, copy_bias, copy_in, copy_out;  // the last two: dst
  WeightsCopy copy_weights;
  ScaledCopy scale_out;  // dst, of integers
};

class ProductDispatch {
 public:
  // `panels`: makes the panels of the weights; null: these are a matrix in memory, or packed. `rows`: in place of a matrix src,
  // whose batch strides are then 0. Both must outlive this.
  ProductDispatch(ProductProgram program, ProductCode code, const PanelMaker* panels = nullptr,
                  const RowSource* rows = nullptr);
  virtual ~ProductDispatch() = default;
  ProductDispatch(const ProductDispatch&) = delete;
  ProductDispatch& operator=(const ProductDispatch&) = delete;

  static std::unique_ptr<const ProductDispatch> read(ProgramReader& from, const RowSource* rows = nullptr,
                                                     const PanelMaker* panels = nullptr);
  void write(ProgramWriter& to) const;

  const kernel::MatmulStack& matrices() const { return stack_; }
  const ProductProgram& program() const { return program_; }
  const ProductCode& code() const { return code_; }
  size_t scratch_bytes() const { return static_cast<size_t>(program_.threads) * thread_bytes_; }
  // `scratch`: scratch_bytes() bytes, 64-byte aligned. `bias` may be null if there is none.
  void run(const void* src, const void* weights, const void* bias, void* dst, void* scratch, const Executor& executor) const {
    run(src, weights, bias, dst, scratch, executor, nullptr);
  }
  // Calls `ended`, unless it is null, after each unit, on its thread: rows and columns of this entry of the batch.
  using UnitEnded = std::function<void(int64_t entry, int64_t first_row, int64_t rows, int64_t first_column, int64_t columns)>;
  void run(const void* src, const void* weights, const void* bias, void* dst, void* scratch, const Executor& executor,
           const UnitEnded& ended) const;
  // The sums over the first `terms` entries of k alone, at most all. For factors of bf16, the schedule must copy both.
  void run_terms(const void* src, const void* weights, void* dst, void* scratch, const Executor& executor, int64_t terms) const;
  int64_t unit_count() const;

  // 0 if weights are not packed ahead.
  size_t packed_bytes() const {
    return program_.are_packed_ahead ? static_cast<size_t>(packed_matrices_ * packed_matrix_bytes_) : 0;
  }
  std::string packing() const;  // as of a Primitive
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
  void run_units(const Memory& memory, int64_t terms, void* scratch, const Executor& executor, const UnitEnded& ended) const;
  bool may_cut_units() const;
  void plan_packed_weights();
  void plan_scratch();
  size_t found_bytes() const;
  // Of the panel with this number of columns.
  const ProductCode::PanelCode& code_of(int64_t columns) const;
  Memory at_entry(const Memory& memory, int64_t entry) const;
  void run_unit(const Unit& unit) const;
  void run_blocks(Unit unit) const;  // of k
  void run_by_panels(const Unit& unit) const;
  void run_by_rows(const Unit& unit) const;
  int64_t panels_together(const Unit& unit) const;
  void run_tile(const Unit& unit, const Rows& rows, const Panel& panel) const;
  void run_panel(const Unit& unit, const Panel& panel) const;
  void run_panel_and_copy_next(const Unit& unit, const Panel& panel) const;
  const ProductUnit* unit_behind(const Unit& unit) const;
  void* next_of(void* scratch, int thread) const;
  NextPanel next_panel(const Unit& unit, const Panel& panel) const;
  bool runs_tiles_together(const Panel& panel) const;
  void run_tiles(const Unit& unit, const Panel& panel) const;
  void call_tiles(const Unit& unit, const Rows& rows, const Panel& panel, const Sums& sums, const char* added,
                  int64_t added_row, int64_t tiles) const;
  Rows rows_of(const Unit& unit) const;
  template <typename Visit>
  void for_each_rows(const Unit& unit, const Visit& visit) const;
  template <typename Visit>
  void for_each_panel(const Unit& unit, const Visit& visit) const;
  Panel panel_of(const Unit& unit, int64_t column, int64_t columns) const;
  int64_t packed_columns(int64_t column) const;
  int64_t packed_together() const;
  int64_t packed_entries() const;
  // Copies what the schedule copies, or finds rows, in a slot of scratch memory; and where they are then.
  void copy(const Unit& unit, const Rows& rows, int64_t slot) const;
  char* copied_rows(const Unit& unit, const Rows& rows, int64_t slot) const;
  void copy(const Unit& unit, const Panel& panel, int64_t slot) const;
  Rows at(const Unit& unit, const Rows& rows, int64_t slot) const;
  Panel at(const Unit& unit, const Panel& panel, int64_t slot) const;
  bool reads_in_place() const { return !program_.are_packed_ahead && !program_.copies_panels; }  // the weights
  bool transposes() const;
  bool is_copied(const Panel& panel) const;
  char* copied_panel(const Unit& unit, int64_t slot) const;
  // `entries` of k.
  void copy_panel(const char* from, int64_t columns, int64_t entries, char* to) const;
  int64_t entries_of(const Unit& unit) const;
  // Whether a block of k is used for all panels of a unit before the next one; else a panel for all of k.
  bool uses_blocks_first() const { return !program_.panels_first || program_.copies_rows || finds_rows(); }
  bool finds_rows() const { return made_rows_ != nullptr && !program_.copies_rows; }
  ColumnGroups groups() const;
  int64_t first_group(const Panel& panel) const;
  std::optional<PanelPlace> place_after(const Unit& unit, const Panel& panel) const;
  int64_t to_next_weights(const Unit& unit, const Panel& panel) const;
  bool has_columns_of_code(const Panel& panel) const;
  bool is_direct(const Panel& panel) const;
  bool writes_units() const;
  void write_unit(const Unit& unit) const;
  Sums sums_of(const Unit& unit, const Rows& rows, const Panel& panel) const;
  Sums bias_of(const Unit& unit, const Rows& rows, const Panel& panel) const;

  const ProductProgram program_;
  const kernel::MatmulStack& stack_;
  const ProductCode code_;
  const PanelMaker* panels_;
  const RowSource* made_rows_;
  int64_t sum_bytes_, src_bytes_, weights_bytes_, bias_bytes_, dst_bytes_;  // of an entry
  std::vector<ProductUnit> units_;                                          // of an entry of the batch
  int64_t packed_matrices_ = 1, packed_matrix_bytes_ = 0;
  Dims packed_strides_;           // from one matrix of packed weights to the next, in elements, per batch dim
  int64_t copied_row_bytes_ = 0;  // from one copied row of src to the next
  int64_t sums_row_bytes_ = 0;    // from one row of sums to the next; 0 if no sums of units are kept in scratch memory
  size_t rows_bytes_ = 0, all_rows_bytes_ = 0, panel_bytes_ = 0, all_panels_bytes_ = 0, tile_bytes_ = 0, thread_bytes_ = 0;
};

}  // namespace lamina::cpu
