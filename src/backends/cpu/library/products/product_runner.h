// Runs a matrix product under a schedule: units of dst on threads, with the functions of product/emit_product.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cpu/code/code_source.h"
#include "backends/cpu/code/jit.h"
#include "backends/cpu/product/product_code.h"
#include "backends/cpu/product/product_schedule.h"
#include "backends/cpu/threads/executor.h"
#include "kernels/contraction.h"

namespace lamina::cpu {

// Weights that are no matrix of floats in memory: makes the panels that register tiles read.
class PanelSource {
 public:
  PanelSource() = default;
  virtual ~PanelSource() = default;
  PanelSource(const PanelSource&) = delete;
  PanelSource& operator=(const PanelSource&) = delete;

  virtual int64_t panel_bytes(int64_t count) const = 0;  // with `count` entries of k
  // Entries of k and columns of the weights, whatever the pointer is that ProductRunner::run gets for them.
  virtual void make_panel(const void* weights, int64_t first_k, int64_t count, int64_t first_column, int64_t columns,
                          char* panel) const = 0;
  // The register tile that reads such panels, in place of one that reads panels of floats.
  virtual CodeSource tile(const ProductTile& of_floats) const { return source_of(of_floats); }
};

class ProductRunner {
 public:
  // Compiles for `machine`, or gets the code from the cache. Factors, bias and dst have one type, f32 or f64. The schedule is
  // legal. `threads`: at most. If there is a `source`, it must outlive the runner, and the schedule copies panels.
  ProductRunner(kernel::Contraction contraction, const Machine& machine, const ProductSchedule& schedule, int threads,
                const PanelSource* source = nullptr);

  ProductRunner(const ProductRunner&) = delete;
  ProductRunner& operator=(const ProductRunner&) = delete;

  const ProductSchedule& schedule() const { return schedule_; }
  size_t scratch_bytes() const { return static_cast<size_t>(threads_) * thread_bytes_; }
  // `scratch`: scratch_bytes() bytes, 64-byte aligned. `bias` may be null if there is none.
  void run(const void* src, const void* weights, const void* bias, void* dst, void* scratch, const Executor& executor) const;

 private:
  struct Memory {
    const char *src, *weights, *bias;
    char* dst;
  };
  struct Unit;
  struct Rows;
  struct Panel;
  static int64_t parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }
  void compile();
  void compile_tile(int64_t rows);
  Memory at_entry(const Memory& memory, int64_t entry) const;
  void run_unit(Unit unit) const;
  void run_rows(const Unit& unit, const Rows& rows) const;
  void run_tile(const Unit& unit, const Rows& rows, const Panel& panel) const;
  Rows rows_of(const Unit& unit, int64_t row, int64_t count) const;
  Panel panel_of(const Unit& unit, int64_t column) const;
  bool is_copied(int64_t columns) const { return schedule_.copies_panels || columns < columns_; }
  const char* weights_at(const Unit& unit, int64_t column) const;
  char* copied_panel(const Unit& unit, int64_t column) const;
  void copy_panels(const Unit& unit) const;
  void copy_panel(const char* from, int64_t columns, int64_t count, char* to) const;

  kernel::Contraction contraction_;
  const kernel::MatmulStack& stack_;
  Machine machine_;
  ProductSchedule schedule_;
  int threads_;
  const PanelSource* source_;        // null: the weights are in memory
  int64_t element_bytes_, columns_;  // of an element; of a panel
  std::vector<CompiledCode> tiles_;  // by rows; those that occur
  CompiledCode copy_;                // of a panel
  bool copies_columns_ = false,      // the weights are contiguous along k
      is_worth_threads_ = false;
  int64_t copied_row_bytes_ = 0;  // from one copied row of src to the next
  size_t rows_bytes_ = 0, panel_bytes_ = 0, panels_bytes_ = 0, tile_bytes_ = 0, thread_bytes_ = 0;
};

}  // namespace lamina::cpu
