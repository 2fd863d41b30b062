// Batches: the row values of short rows are computed for all rows of a tile at the same time, one lane per row.
#pragma once

#include <span>
#include <vector>

#include "backends/cpu/emit/row_sums.h"
#include "backends/cpu/emit/tiles.h"

namespace lamina::cpu {

class Batches : private Part {
 public:
  Batches(Parts& parts, RowPhases& row_phases, Tiles& tiles);
  void emit(const Tile& tile);

 private:
  struct Batch {
    Tile tile;
    Row values;       // one lane per row
    ValueList saved;  // in the order of for_each_row_value: the content of each slot of `values`
  };
  Batch begin(const Tile& tile);
  Row row_of(const Batch& batch, llvm::Value* place);
  void compute_values(Batch& batch, int phase);
  void save(const Batch& batch, size_t slot, llvm::Value* value);
  void emit_shifts(Batch& batch, int phase);
  void emit_walk(Batch& batch, int phase);
  void finish_walk(Row& values, std::span<Root> roots, const std::vector<RowSums::Place>& places, int phase);
  void emit_far_rows(const Batch& batch, Row& values, int phase);
  std::vector<bool> changed_by(const NodeList& moments) const;

  Parts& p_;
  RowPhases& row_phases_;
  Tiles& tiles_;
  RowSums sums_;
  struct NodeUse {
    bool read_by_rows = false, read_by_batch = false;
    llvm::AllocaInst* shifts = nullptr;  // for moments: one value per row
  };
  std::vector<NodeUse> nodes_;
  // Per node, for row values: rows use memory, the batch computes. Stores run with the last phase.
  std::vector<bool> batch_computes_, rows_compute_, rows_compute_last_;
};

}  // namespace lamina::cpu
