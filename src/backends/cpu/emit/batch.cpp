// Short rows: what is known once per row is computed for all rows of a tile at once, a lane each.
//
// Each row of the tile walks by itself and leaves of every accumulator one vector. The tree over the lanes then goes on with
// the vectors of all rows: a level joins two of them to one that holds the halves of both, so that it takes as many operations
// as for half of the rows. What comes out is a vector with a lane per row, and so is every value made of it. A row loads its
// lane before its next walk. Each lane sees the operations that a row by itself would, in the same order: the bits are the
// same.
//
// Loads of a value per row are gathered for what the batch makes of them; stores are the rows' own. Where the tile has fewer
// rows, the lanes that are left hold what some row before left there, and nobody reads them.
#include <algorithm>
#include <numeric>
#include <utility>

#include "backends/cpu/emit/kernel_emitter.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

namespace {

bool is_reduction(const Node& n) { return n.kind == NodeKind::reduce || n.kind == NodeKind::moments; }
bool is_read(const Node& n) { return n.kind == NodeKind::load || n.kind == NodeKind::index; }

// Two vectors of `rows` rows each become one, of which each half of a register's lanes, or of all, comes from one of them: the
// rows of the first (0 and up) and of the second (`rows` and up) in the order they have then.
std::vector<int> joined_rows(int rows, int per_group) {
  std::vector<int> order;
  for (int group = 0; group < rows; group += per_group) {
    for (const int source : {0, rows}) {
      for (int i = 0; i < per_group; ++i) order.push_back(source + group + i);
    }
  }
  return order;
}

// Rows whose lanes lie within one register of 128 bits are joined there: shuffles across registers are slow.
int rows_per_group(int rows, int lanes_of_row, int lanes_of_register) {
  return lanes_of_row > lanes_of_register ? rows : std::min(rows, lanes_of_register / lanes_of_row);
}

// Which of `count` vectors ends up in which lane.
std::vector<int> order_of_rows(int count, int lanes, int lanes_of_register) {
  std::vector<std::vector<int>> vectors;
  for (int i = 0; i < count; ++i) vectors.push_back({i});
  for (int of_row = lanes; of_row > 1 && vectors.size() > 1; of_row /= 2) {
    const auto rows = static_cast<int>(vectors[0].size());
    for (size_t i = 0; i < vectors.size() / 2; ++i) {
      std::vector<int> joined;
      for (const int r : joined_rows(rows, rows_per_group(rows, of_row, lanes_of_register))) {
        joined.push_back(vectors[2 * i + static_cast<size_t>(r >= rows)][static_cast<size_t>(r % rows)]);
      }
      vectors[i] = joined;
    }
    vectors.resize(vectors.size() / 2);
  }
  std::vector<int> order;
  for (const auto& rows : vectors) order.insert(order.end(), rows.begin(), rows.end());
  return order;
}

}  // namespace

void KernelEmitter::in_batch(const std::function<void()>& emission) {
  const int before = row_lanes_;
  row_lanes_ = schedule_.rows_per_tile;
  emission();
  row_lanes_ = before;
}

void KernelEmitter::begin_batches() {
  const auto rows = static_cast<uint64_t>(schedule_.rows_per_tile);
  batch_nodes_.assign(kernel_.nodes.size(), {});
  for (const Node& n : kernel_.nodes) {
    const bool in_batch = !n.per_element && n.kind != NodeKind::store && !is_reduction(n) && n.kind != NodeKind::column_sum;
    for (int k = 0; k < kernel::operand_count(n); ++k) {
      if (n.operands[static_cast<size_t>(k)] < 0) continue;
      BatchNode& operand = batch_nodes_[static_cast<size_t>(n.operands[static_cast<size_t>(k)])];
      (in_batch ? operand.read_by_batch : operand.read_by_rows) = true;
    }
  }
  int64_t bytes = 0;
  for (int phase = 0; phase < kernel_.phase_count(); ++phase)
    bytes = std::max(bytes, end_of(places_of(phases_.roots_of(phase))));
  row_sums_ = e_.alloca_at_entry(llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(bytes)));
  row_sums_->setAlignment(llvm::Align(kKeptAlignment));
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    if (n.kind == NodeKind::moments)
      batch_nodes_[i].shifts = e_.alloca_at_entry(llvm::ArrayType::get(e_.type(n.type, 1), rows));
  }
}

// Where the rows leave their vectors of these roots' accumulators; one after the other, in whole lines.
std::vector<KernelEmitter::RowSums> KernelEmitter::places_of(const NodeList& roots) const {
  std::vector<RowSums> places;
  for (const NodeIndex root : roots) {
    const Node& n = node(root);
    if (!is_reduction(n)) continue;
    for (int i = 0; i < (n.kind == NodeKind::moments ? 2 : 1); ++i) {
      places.push_back({n.kind == NodeKind::moments ? Combine::sum : combine_of(n.reduction), n.type, end_of(places)});
    }
  }
  return places;
}

int64_t KernelEmitter::end_of(const std::vector<RowSums>& places) const {
  using tuning::kLine;
  if (places.empty()) return 0;
  const auto bits = static_cast<int64_t>(e_.type(places.back().type, e_.width)->getPrimitiveSizeInBits().getFixedValue());
  return places.back().begin + (bits / 8 * schedule_.rows_per_tile + kLine - 1) / kLine * kLine;
}

llvm::Value* KernelEmitter::row_sum_slot(const RowSums& sums, llvm::Value* place) {
  return b_.CreateGEP(e_.type(sums.type, e_.width), b_.CreateGEP(b_.getInt8Ty(), row_sums_, i64(sums.begin)), place);
}

// Of the values per row, those that the code being emitted makes: a row reads and writes memory, its batch computes.
bool KernelEmitter::is_computed_here(NodeIndex index) const {
  if (batch_nodes_.empty()) return true;
  const Node& n = node(index);
  const bool by_batch = row_lanes_ > 1;
  if (is_read(n)) return !by_batch && batch_nodes_[static_cast<size_t>(index)].read_by_rows;
  if (n.kind == NodeKind::store) return !by_batch;
  return by_batch || n.kind == NodeKind::constant;
}

void KernelEmitter::emit_batched_tile(const Tile& tile, llvm::Value* begin) {
  const int last = kernel_.phase_count() - 1;
  row_state_.assign(row_value_count(kernel_), {});
  saved_.assign(row_state_.size(), nullptr);
  stores_row_values_ = false;
  Row batch = begin_batch(tile);
  for (int phase = 0; phase < last; ++phase) {
    emit_batch_values(batch, phase);
    emit_batch_shifts(batch, tile, phase);
    emit_batch_walk(batch, tile, phase);
    if (phase + 1 == last || !phases_.may_be_skipped(phase + 1)) continue;
    ++phase;
    in_batch([&] { emit_second_walk(batch, phase, [&](Row& walked) { emit_far_rows(walked, tile, phase); }); });
  }
  emit_batch_values(batch, last);
  stores_row_values_ = true;
  emit_last_phase(tile.first, tile.count, begin);
}

// With what the batch makes values of: read where the rows are, the last of them in the place of those that are not there.
Row KernelEmitter::begin_batch(const Tile& tile) {
  Row batch;
  batch.values.assign(kernel_.nodes.size(), nullptr);
  batch.mean_high = batch.mean_low = batch.shifts = batch.values;
  llvm::Value* const last = b_.CreateSub(tile.count, i64(1));
  std::vector<ValueList> positions;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    if (!batch_nodes_[i].read_by_batch || n.per_element || !is_read(n)) continue;
    for (int r = static_cast<int>(positions.size()); r < schedule_.rows_per_tile; ++r) {
      positions.push_back(
          e_.row_position(b_.CreateAdd(tile.first, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, i64(r), last))));
    }
    llvm::Value*& all = batch.values[i];
    all = llvm::PoisonValue::get(e_.type(n.type, schedule_.rows_per_tile));
    for (size_t r = 0; r < positions.size(); ++r) {
      llvm::Value* const one = n.kind == NodeKind::load ? memory_.load_arg(e_.row_pointer(n.arg, positions[r]), n.arg, {}, 0)
                                                        : e_.row_index(n, positions[r]);
      all = b_.CreateInsertElement(all, one, i64(static_cast<int64_t>(r)));
    }
  }
  return batch;
}

// Rows load what they read of it.
void KernelEmitter::emit_batch_values(Row& batch, int phase) {
  in_batch([&] { emit_row_values(batch, phase); });
  for_each_row_value(batch, [&](size_t slot, llvm::Value* value) {
    const size_t i = slot % kernel_.nodes.size();
    const Node& n = kernel_.nodes[i];
    if (value == nullptr || value == saved_[slot] || is_read(n) || n.kind == NodeKind::constant ||
        !batch_nodes_[i].read_by_rows)
      return;
    saved_[slot] = value;
    save_batch(slot, value);
  });
}

// A boolean takes a byte.
void KernelEmitter::save_batch(size_t slot, llvm::Value* value) {
  llvm::Type* const type = value->getType()->getScalarType();
  row_state_[slot].type = type;
  llvm::Value* const at = row_slot(slot, type, i64(0));
  row_state_[slot].of_rows->setAlignment(llvm::Align(kKeptAlignment));
  if (type->isIntegerTy(1)) value = b_.CreateZExt(value, value->getType()->getWithNewType(b_.getInt8Ty()));
  b_.CreateAlignedStore(value, at, llvm::Align(1));
}

// The second walk of rows whose moments it decides, each by itself: it is rare.
void KernelEmitter::emit_far_rows(Row& batch, const Tile& tile, int phase) {
  const NodeList roots = phases_.roots_of(phase);
  std::vector<bool> changes(kernel_.nodes.size(), false);
  for (const NodeIndex root : roots) {
    for (size_t i = 0; i < changes.size(); ++i) {
      const Node& n = kernel_.nodes[i];
      if (static_cast<NodeIndex>(i) == root ||
          ((n.kind == NodeKind::mean || n.kind == NodeKind::variance) && n.operands[0] == root))
        changes[i] = true;
    }
  }
  const auto for_each_change = [&](Row& row, const auto& visit) {
    for_each_row_value(row, [&](size_t slot, llvm::Value*& value) {
      if (value != nullptr && changes[slot % changes.size()]) visit(slot, value);
    });
  };
  for_each_change(batch, [&](size_t slot, llvm::Value* value) { save_batch(slot, value); });
  const int lanes_before = std::exchange(row_lanes_, 1);
  emit_rows(i64(0), tile.count, 1, [&](llvm::Value* place) {
    Row row = row_of_batch(tile, place);
    emit_row_values(row, phase);
    llvm::Value* is_far = b_.getFalse();
    for (const NodeIndex root : roots) is_far = b_.CreateOr(is_far, row.values[static_cast<size_t>(root)]);
    e_.when(is_far, [&] {
      emit_walk({&row}, roots, phase);
      for_each_change(row,
                      [&](size_t slot, llvm::Value* value) { b_.CreateStore(value, row_slot(slot, value->getType(), place)); });
    });
  });
  row_lanes_ = lanes_before;
  for_each_change(batch, [&](size_t slot, llvm::Value*& value) {
    if (!row_state_[slot].type->isIntegerTy(1))
      value = b_.CreateAlignedLoad(value->getType(), row_slot(slot, row_state_[slot].type, i64(0)), llvm::Align(1));
  });
}

Row KernelEmitter::row_of_batch(const Tile& tile, llvm::Value* place) {
  Row row = begin_row(b_.CreateAdd(tile.first, place), place);
  restore(row, place);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (batch_nodes_[i].shifts == nullptr) continue;
    llvm::Type* const type = e_.type(kernel_.nodes[i].type, 1);
    row.shifts[i] = b_.CreateLoad(type, b_.CreateGEP(type, batch_nodes_[i].shifts, place));
  }
  return row;
}

// What the differences of this phase's moments are taken from. The rows' first elements wait where their sums will.
void KernelEmitter::emit_batch_shifts(Row& batch, const Tile& tile, int phase) {
  NodeList moments = phases_.roots_of(phase);
  std::erase_if(moments, [&](NodeIndex i) { return node(i).kind != NodeKind::moments || phases_.loop_of(i) != phase; });
  if (moments.empty()) return;
  std::vector<RowSums> places;
  for (const NodeIndex i : moments) places.push_back({Combine::sum, node(i).type, end_of(places)});
  emit_rows(i64(0), tile.count, 1, [&](llvm::Value* place) {
    Row row = row_of_batch(tile, place);
    emit_row_values(row, phase);
    for (size_t m = 0; m < moments.size(); ++m)
      b_.CreateStore(add_shift_elements(row, moments[m]), row_sum_slot(places[m], place));
  });
  for (size_t m = 0; m < moments.size(); ++m) {
    const auto i = static_cast<size_t>(moments[m]);
    batch.shifts[i] = shift_from(moments[m], fold_rows(places[m], std::clamp(shift_elements(), 1, e_.width)));
    b_.CreateAlignedStore(batch.shifts[i], batch_nodes_[i].shifts, llvm::Align(1));
  }
}

void KernelEmitter::emit_batch_walk(Row& batch, const Tile& tile, int phase) {
  const NodeList roots = phases_.roots_of(phase), nodes = phases_.nodes_for(roots, phase);
  if (roots.empty()) return;
  const std::vector<RowSums> places = places_of(roots);
  emit_rows(i64(0), tile.count, 1, [&](llvm::Value* place) {
    Row row = row_of_batch(tile, place);
    if (phase == 0) prefetch_ends(row);
    emit_row_values(row, phase);
    begin_roots(row, roots, phase);
    choose_step(nodes, 1);
    walk_run(row, i64(0), kernel_.row_size(), [&](const std::vector<Lanes>& lanes) { emit_body({&row}, nodes, phase, lanes); });
    size_t next = 0;
    for (RootState& root : roots_) {
      for (const auto& accumulator : root.accumulators)
        b_.CreateStore(accumulator->fold_vectors(), row_sum_slot(places[next++], place));
    }
  });
  in_batch([&] { finish_batch(batch, places, phase); });
}

// `places`: of all roots' accumulators.
void KernelEmitter::finish_batch(Row& batch, const std::vector<RowSums>& places, int phase) {
  size_t next = 0;
  for (RootState& root : roots_) {
    if (root.accumulators.empty()) continue;
    add_totals(root);
    root.shift = batch.shifts[static_cast<size_t>(root.node)];
    ValueList sums;
    for (size_t i = 0; i < root.accumulators.size(); ++i) sums.push_back(fold_rows(places[next++], e_.width));
    combine_block(root, sums, nullptr, nullptr);
  }
  finish_roots(batch, phase);
}

// The rest of the tree over the first `lanes` lanes of the vectors that the rows left: a lane per row.
llvm::Value* KernelEmitter::fold_rows(const RowSums& sums, int lanes) {
  const int rows = schedule_.rows_per_tile, lanes_of_register = std::min(lanes, sums.type == kernel::Type::f64 ? 2 : 4);
  ValueList vectors(static_cast<size_t>(rows));
  const std::vector<int> order = order_of_rows(rows, lanes, lanes_of_register);
  for (int lane = 0; lane < rows; ++lane) {
    vectors[static_cast<size_t>(order[static_cast<size_t>(lane)])] =
        b_.CreateLoad(e_.type(sums.type, lanes), row_sum_slot(sums, i64(lane)));
  }
  for (int of_row = lanes, rows_of_vector = 1; of_row > 1; of_row /= 2) {
    const bool joins = vectors.size() > 1;
    std::vector<int> halves(static_cast<size_t>(rows_of_vector));
    std::iota(halves.begin(), halves.end(), 0);
    if (joins) halves = joined_rows(rows_of_vector, rows_per_group(rows_of_vector, of_row, lanes_of_register));
    std::vector<int> low, high;
    for (const int r : halves) {
      for (int lane = r * of_row; lane < r * of_row + of_row / 2; ++lane) {
        low.push_back(lane);
        high.push_back(lane + of_row / 2);
      }
    }
    const size_t step = joins ? 2 : 1, left = vectors.size() / step;
    for (size_t v = 0; v < left; ++v) {
      llvm::Value *const a = vectors[v * step], *const b = vectors[v * step + step - 1];
      vectors[v] = combine(e_, sums.how, b_.CreateShuffleVector(a, b, low), b_.CreateShuffleVector(a, b, high));
    }
    vectors.resize(left);
    rows_of_vector = static_cast<int>(halves.size());
  }
  return b_.CreateFreeze(join(vectors));  // lanes without a row may never have been written
}

// One vector of all their lanes.
llvm::Value* KernelEmitter::join(ValueList parts) {
  if (!parts[0]->getType()->isVectorTy()) {
    llvm::Value* all =
        llvm::PoisonValue::get(llvm::FixedVectorType::get(parts[0]->getType(), static_cast<unsigned>(parts.size())));
    for (size_t i = 0; i < parts.size(); ++i) all = b_.CreateInsertElement(all, parts[i], i64(static_cast<int64_t>(i)));
    return all;
  }
  while (parts.size() > 1) {
    for (size_t i = 0; i < parts.size() / 2; ++i) parts[i] = e_.side_by_side(parts[2 * i], parts[2 * i + 1]);
    parts.resize(parts.size() / 2);
  }
  return parts[0];
}

}  // namespace lamina::cpu
