// Short rows: row values are computed for all rows of a tile at the same time, one lane per row.
//
// Each row of the tile runs its walk separately and stores one vector per accumulator. The tree over the lanes then continues
// with the vectors of all rows: each level joins two vectors into one that has the halves of both, so that it needs as many
// operations as for half of the rows. The result is a vector with one lane per row, and so is every value computed from it. A
// row loads its lane before its next walk. Each lane has the same operations in the same order as a separate row, so the bits
// are the same.
//
// Loads of row values are gathers if the batch uses them; stores are done per row. If a tile has fewer rows, the other lanes
// contain data of an earlier row, which are never read.
#include "backends/cpu/emit/batch.h"

#include <algorithm>
#include <utility>

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

namespace {

bool is_read(const Node& n) { return n.kind == NodeKind::load || n.kind == NodeKind::index; }

}  // namespace

Batches::Batches(Parts& parts, RowPhases& row_phases, Tiles& tiles)
    : Part(parts.e), p_(parts), row_phases_(row_phases), tiles_(tiles), sums_(parts.e), nodes_(parts.e.kernel.nodes.size()) {
  const auto rows = static_cast<uint64_t>(schedule_.rows_per_tile);
  for (const Node& n : kernel_.nodes) {
    const bool in_batch = !n.per_element && !writes_arg(n) && !reduces_rows(n);
    for (int k = 0; k < kernel::operand_count(n); ++k) {
      if (n.operands[static_cast<size_t>(k)] < 0) continue;
      NodeUse& operand = nodes_[static_cast<size_t>(n.operands[static_cast<size_t>(k)])];
      (in_batch ? operand.read_by_batch : operand.read_by_rows) = true;
    }
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    batch_computes_.push_back(!is_read(n) && n.kind != NodeKind::store);
    rows_compute_.push_back(is_read(n) ? nodes_[i].read_by_rows : n.kind == NodeKind::constant);
    rows_compute_last_.push_back(rows_compute_[i] || n.kind == NodeKind::store);
    if (n.kind != NodeKind::moments) continue;
    nodes_[i].read_by_rows = true;  // a row's second walk starts with the mean of the first
    nodes_[i].shifts = e_.alloca_at_entry(llvm::ArrayType::get(e_.type(n.type, 1), rows));
  }
}

void Batches::emit(const Tile& tile) {
  const int last = plan_.last();
  Batch batch = begin(tile);
  for (int phase = 0; phase < last; ++phase) {
    compute_values(batch, phase);
    emit_shifts(batch, phase);
    emit_walk(batch, phase);
    if (phase + 1 == last || !plan_.may_be_skipped(phase + 1)) continue;
    ++phase;
    row_phases_.second_walk(batch.values, phase, [&](Row& walked) { emit_far_rows(batch, walked, phase); });
  }
  compute_values(batch, last);
  batch.tile.computes = &rows_compute_last_;
  tiles_.emit_last_phase(batch.tile);
}

// Also loads the operands of the batch's row values. Lanes past the end use the last row.
Batches::Batch Batches::begin(const Tile& tile) {
  Batch batch{.tile = tile, .values = {}, .saved = ValueList(row_value_count(kernel_), nullptr)};
  batch.tile.computes = &rows_compute_;
  Row& values = batch.values;
  values.frame.lanes = schedule_.rows_per_tile;
  values.computes = &batch_computes_;
  values.values.assign(kernel_.nodes.size(), nullptr);
  values.mean_high = values.mean_low = values.shifts = values.values;
  llvm::Value* const last = b_.CreateSub(tile.count, i64(1));
  std::vector<ValueList> positions;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    if (!nodes_[i].read_by_batch || n.per_element || !is_read(n)) continue;
    for (int r = static_cast<int>(positions.size()); r < schedule_.rows_per_tile; ++r) {
      positions.push_back(e_.row_position(b_.CreateAdd(tile.first, e_.smaller(i64(r), last))));
    }
    llvm::Value*& all = values.values[i];
    all = llvm::PoisonValue::get(e_.type(n.type, schedule_.rows_per_tile));
    for (size_t r = 0; r < positions.size(); ++r) {
      llvm::Value* const one = n.kind == NodeKind::load ? p_.memory.load_arg(e_.row_pointer(n.arg, positions[r]), n.arg, {}, 0)
                                                        : e_.row_index(n, positions[r]);
      all = b_.CreateInsertElement(all, one, i64(static_cast<int64_t>(r)));
    }
  }
  return batch;
}

// Stores the values that rows read.
void Batches::compute_values(Batch& batch, int phase) {
  p_.values.compute_row_values(batch.values, phase);
  for_each_row_value(batch.values, [&](size_t slot, llvm::Value* value) {
    const size_t i = slot % kernel_.nodes.size();
    const Node& n = kernel_.nodes[i];
    if (value == nullptr || value == batch.saved[slot] || is_read(n) || n.kind == NodeKind::constant || !nodes_[i].read_by_rows)
      return;
    batch.saved[slot] = value;
    save(batch, slot, value);
  });
}

// A boolean is stored as one byte.
void Batches::save(const Batch& batch, size_t slot, llvm::Value* value) {
  llvm::Value* const at = batch.tile.store->address_of_all(slot, value->getType()->getScalarType());
  if (value->getType()->isIntOrIntVectorTy(1)) value = b_.CreateZExt(value, value->getType()->getWithNewType(b_.getInt8Ty()));
  b_.CreateAlignedStore(value, at, llvm::Align(1));
}

// The moments, and the nodes that read them.
std::vector<bool> Batches::changed_by(const NodeList& moments) const {
  std::vector<bool> changes(kernel_.nodes.size(), false);
  for (const NodeIndex root : moments) {
    changes[static_cast<size_t>(root)] = true;
    for (size_t i = 0; i < changes.size(); ++i) {
      const Node& n = kernel_.nodes[i];
      if ((n.kind == NodeKind::mean || n.kind == NodeKind::variance) && n.operands[0] == root) changes[i] = true;
    }
  }
  return changes;
}

// The second walk of rows that need one, row by row, because it is rare.
void Batches::emit_far_rows(const Batch& batch, Row& values, int phase) {
  const NodeList roots = plan_.roots(phase);
  const std::vector<bool> changes = changed_by(roots);
  RowStore& store = *batch.tile.store;
  const auto for_each_change = [&](Row& row, const auto& visit) {
    for_each_row_value(row, [&](size_t slot, llvm::Value*& value) {
      if (value != nullptr && changes[slot % changes.size()]) visit(slot, value);
    });
  };
  for_each_change(values, [&](size_t slot, llvm::Value* value) { save(batch, slot, value); });
  tiles_.for_rows(i64(0), batch.tile.count, 1, [&](llvm::Value* place) {
    Row row = row_of(batch, place);
    p_.values.compute_row_values(row, phase);
    llvm::Value* is_far = b_.getFalse();
    for (const NodeIndex root : roots) is_far = b_.CreateOr(is_far, row.values[static_cast<size_t>(root)]);
    e_.when(is_far, [&] {
      row_phases_.walk({&row}, phase);
      for_each_change(
          row, [&](size_t slot, llvm::Value* value) { b_.CreateStore(value, store.address(slot, value->getType(), place)); });
    });
  });
  for_each_change(values, [&](size_t slot, llvm::Value*& value) {
    if (llvm::Type* const type = store.type_of(slot); !type->isIntegerTy(1))
      value = b_.CreateAlignedLoad(value->getType(), store.address(slot, type, i64(0)), llvm::Align(1));
  });
}

Row Batches::row_of(const Batch& batch, llvm::Value* place) {
  Row row = tiles_.begin_row(batch.tile, place);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].shifts == nullptr) continue;
    llvm::Type* const type = e_.type(kernel_.nodes[i].type, 1);
    row.shifts[i] = b_.CreateLoad(type, b_.CreateGEP(type, nodes_[i].shifts, place));
  }
  return row;
}

// Computes the shifts of this phase's moments. The rows' first elements are stored in the memory of their later sums.
void Batches::emit_shifts(Batch& batch, int phase) {
  NodeList moments = plan_.roots(phase);
  std::erase_if(moments, [&](NodeIndex i) { return node(i).kind != NodeKind::moments || plan_.loop_of(i) != phase; });
  if (moments.empty()) return;
  std::vector<RowSums::Place> places;
  for (const NodeIndex i : moments) places.push_back({Combine::sum, node(i).type, sums_.end_of(places)});
  tiles_.for_rows(i64(0), batch.tile.count, 1, [&](llvm::Value* place) {
    Row row = row_of(batch, place);
    p_.values.compute_row_values(row, phase);
    for (size_t m = 0; m < moments.size(); ++m)
      b_.CreateStore(p_.reductions.add_shift_elements(row, moments[m]), sums_.address(places[m], place));
  });
  const int lanes = std::clamp(p_.reductions.shift_elements(), 1, e_.width);
  for (size_t m = 0; m < moments.size(); ++m) {
    const auto i = static_cast<size_t>(moments[m]);
    llvm::Value*& shift = batch.values.shifts[i];
    shift = p_.reductions.shift_from(moments[m], sums_.fold(places[m], lanes));
    b_.CreateAlignedStore(shift, nodes_[i].shifts, llvm::Align(1));
  }
}

void Batches::emit_walk(Batch& batch, int phase) {
  const NodeList roots = plan_.roots(phase);
  if (roots.empty()) return;
  const std::vector<RowSums::Place> places = sums_.places_of(roots);
  std::vector<Root> left;
  tiles_.for_rows(i64(0), batch.tile.count, 1, [&](llvm::Value* place) {
    Row row = row_of(batch, place);
    if (phase == 0) p_.prefetch.prefetch_ends(row);
    p_.values.compute_row_values(row, phase);
    PhaseWalk walk(p_, {&row}, roots, phase);
    walk.run.count(e_, row, i64(0), kernel_.row_size(), walk.body);
    size_t next = 0;
    for (Root& root : walk.roots) {
      for (const auto& accumulator : root.accumulators)
        b_.CreateStore(accumulator->fold_vectors(), sums_.address(places[next++], place));
    }
    left = std::move(walk.roots);
  });
  finish_walk(batch.values, left, places, phase);
}

// `places`: those of all roots' accumulators.
void Batches::finish_walk(Row& values, std::span<Root> roots, const std::vector<RowSums::Place>& places, int phase) {
  size_t next = 0;
  for (Root& root : roots) {
    if (!root.reduces()) continue;
    p_.reductions.add_totals(root, values.frame.lanes);
    root.shift = values.shifts[static_cast<size_t>(root.node)];
    ValueList sums;
    for (size_t i = 0; i < root.accumulators.size(); ++i) sums.push_back(sums_.fold(places[next++], e_.width));
    p_.reductions.add_block(root, sums, nullptr, nullptr);
  }
  p_.reductions.finish(values, roots, phase);
}

}  // namespace lamina::cpu
