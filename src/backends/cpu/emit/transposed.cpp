// The transposed schedule: a lane is a row. As many rows as a vector has lanes, a *group*, go together; a value per row is a
// vector, and so is the value of one element of each. The 64 virtual lanes of a row lie in memory, a vector each.
//
// An arg whose elements lie side by side along a row, not across rows, is transposed in registers when it is read and
// written: a square of as many positions as there are rows. Column sums, which add row after row, are taken from such squares
// too.
#include <algorithm>
#include <bit>
#include <utility>

#include "backends/cpu/emit/kernel_emitter.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

// Rows that follow each other along the last outer dim. Fewer than a group has (at that dim's end, or at the end of the rows)
// are code of their own, with masks.
void KernelEmitter::emit_transposed() {
  llvm::Value* const begin = e_.row_begin;
  llvm::Value* const end = e_.row_end;
  make_kept_buffers(1);
  const size_t lane_dim = static_cast<size_t>(kernel_.outer_rank) - 1;
  llvm::Value* const extent = e_.call_word(kernel_.args.size() + lane_dim);
  llvm::AllocaInst* const next = e_.alloca_at_entry(b_.getInt64Ty());
  b_.CreateStore(begin, next);
  auto* const head = llvm::BasicBlock::Create(e_.context, "rows", e_.function);
  auto* const body = llvm::BasicBlock::Create(e_.context, "group", e_.function);
  auto* const after = llvm::BasicBlock::Create(e_.context, "after", e_.function);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::Value* const first = b_.CreateLoad(b_.getInt64Ty(), next);
  b_.CreateCondBr(b_.CreateICmpSLT(first, end), body, after);
  b_.SetInsertPoint(body);
  llvm::Value* const left = e_.smaller(b_.CreateSub(extent, b_.CreateURem(first, extent)), b_.CreateSub(end, first));
  llvm::Value* const count = e_.smaller(left, i64(row_lanes_));
  llvm::Value* const is_full = b_.CreateICmpEQ(count, i64(row_lanes_));
  const auto full_group = [&] {
    next_group_ = begin_row(b_.CreateAdd(first, i64(row_lanes_)), i64(0)).pointers;
    emit_tile(first, i64(1), begin);
    next_group_.clear();
  };
  const auto part_of_group = [&] {
    auto* const words = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(row_lanes_));
    rows_in_group_ = count;
    row_mask_ = b_.CreateICmpSLT(b_.CreateStepVector(words), e_.widen(count, row_lanes_));
    emit_tile(first, i64(1), begin);
    rows_in_group_ = row_mask_ = nullptr;
  };
  if (schedule_.whole_groups) {
    full_group();
  } else {
    e_.when(is_full, full_group);
    e_.when(b_.CreateNot(is_full), part_of_group);
  }
  b_.CreateStore(b_.CreateAdd(first, count), next);
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
  b_.CreateRetVoid();
}

bool KernelEmitter::is_transposed_in_registers(int arg) const {
  return e_.across_rows() && schedule_.lane_steps[static_cast<size_t>(arg)] == LaneStep::other &&
         kernel_.args[static_cast<size_t>(arg)].strides.back() == 1;
}

bool KernelEmitter::is_transposed_in_registers(const Node& n) const {
  if (n.kind == NodeKind::column_sum) return e_.across_rows();
  return (n.kind == NodeKind::load || n.kind == NodeKind::store) && n.per_element && is_transposed_in_registers(n.arg);
}

std::vector<Lanes> KernelEmitter::positions_from(llvm::Value* offset, int count) {
  if (!e_.across_rows()) return chunk_at(offset, count);
  std::vector<Lanes> positions;
  for (int i = 0; i < count; ++i)
    positions.push_back({row_lanes_, b_.CreateAdd(offset, i64(i)), row_mask_, static_cast<size_t>(i)});
  return positions;
}

// Of all roots; across rows they are of no other form.
std::vector<LanesInMemory*> KernelEmitter::lanes_in_memory() {
  std::vector<LanesInMemory*> all;
  for (RootState& root : roots_) {
    for (const auto& accumulator : root.accumulators) all.push_back(static_cast<LanesInMemory*>(accumulator.get()));
  }
  return all;
}

// `count` positions from `begin`. Lanes in memory start anew here; not where several segments fill them.
void KernelEmitter::walk_positions(llvm::Value* begin, int64_t count, const Body& body) {
  if (!roots_reduce() || e_.inner_rank() > 1) return walk_in_order(begin, count, body);
  if (step_ < row_lanes_ && count >= kVirtualLanes) return walk_lanes(begin, count, body);
  for (LanesInMemory* accumulator : lanes_in_memory()) accumulator->reset();
  walk_in_order(begin, count, body);
}

void KernelEmitter::walk_in_order(llvm::Value* begin, int64_t count, const Body& body) {
  const int64_t whole = count / step_ * step_;
  if (whole > 0)
    e_.loop(begin, b_.CreateAdd(begin, i64(whole)), i64(step_), [&](llvm::Value* at) { body(positions_from(at, step_)); });
  if (count > whole) body(positions_from(b_.CreateAdd(begin, i64(whole)), static_cast<int>(count - whole)));
}

// Lane after lane, each from the block's begin to its end in a register. Lanes that the fold would join first, 32 apart, go
// together and are joined at once: half of the lanes never exist in memory.
void KernelEmitter::walk_lanes(llvm::Value* begin, int64_t count, const Body& body) {
  const int usual_step = std::exchange(step_, std::max(1, step_ / 2));
  const auto accumulators = lanes_in_memory();
  for (LanesInMemory* accumulator : accumulators) accumulator->hold(step_);
  e_.loop(i64(0), i64(kVirtualLanes / 2), i64(step_), [&](llvm::Value* lane) {
    for (LanesInMemory* accumulator : accumulators) accumulator->start_held();
    walk_chunks(b_.CreateAdd(begin, lane), count / kVirtualLanes, body);
    walk_tail_chunk(b_.CreateAdd(begin, i64(count - count % kVirtualLanes)), lane, count % kVirtualLanes, body);
    for (LanesInMemory* accumulator : accumulators) accumulator->join_held(lane);
  });
  for (LanesInMemory* accumulator : accumulators) accumulator->release();
  step_ = usual_step;
}

// The held lanes in `chunks` chunks, the first lane of them at `at`; a few chunks an iteration.
void KernelEmitter::walk_chunks(llvm::Value* at, int64_t chunks, const Body& body) {
  const bool is_light = step_ > 1 || row_lanes_ > e_.width;
  const int64_t most = is_light ? tuning::kChunksOfLightBody : tuning::kChunksOfHeavyBody, iterations = chunks / most;
  const auto iteration = [&](llvm::Value* first, int64_t deep) {
    std::vector<Lanes> positions;
    for (int64_t offset = 0; offset < deep * kVirtualLanes; offset += kVirtualLanes / 2) {
      for (Lanes& lanes : positions_from(b_.CreateAdd(first, i64(offset)), step_)) {
        lanes.number = positions.size();
        positions.push_back(lanes);
      }
    }
    body(positions);
  };
  const int64_t whole = iterations * most * kVirtualLanes;
  if (iterations == 1)
    iteration(at, most);
  else if (iterations > 1)
    e_.loop(at, b_.CreateAdd(at, i64(whole)), i64(most * kVirtualLanes), [&](llvm::Value* first) { iteration(first, most); });
  if (chunks % most != 0) iteration(b_.CreateAdd(at, i64(whole)), chunks % most);
}

// The last chunk, which has `live` of the lanes only.
void KernelEmitter::walk_tail_chunk(llvm::Value* begin, llvm::Value* lane, int64_t live, const Body& body) {
  if (live == 0) return;
  for (int i = 0; i < 2 * step_; ++i) {
    llvm::Value* const at = b_.CreateAdd(lane, i64(i < step_ ? i : kVirtualLanes / 2 + i - step_));
    e_.when(b_.CreateICmpSLT(at, i64(live)), [&] {
      std::vector<Lanes> positions = positions_from(b_.CreateAdd(begin, at), 1);
      positions[0].number = static_cast<size_t>(i);
      body(positions);
    });
  }
}

// A range known at run time only.
void KernelEmitter::walk_position_range(llvm::Value* begin, llvm::Value* end, const Body& body) {
  llvm::Value* const iterations = b_.CreateSDiv(b_.CreateSub(end, begin), i64(step_));
  llvm::Value* const rest = b_.CreateAdd(begin, b_.CreateMul(iterations, i64(step_)));
  e_.loop(begin, rest, i64(step_), [&](llvm::Value* at) { body(positions_from(at, step_)); });
  e_.loop(rest, end, i64(1), [&](llvm::Value* at) { body(positions_from(at, 1)); });
}

// Element j of vector i becomes element i of vector j.
void KernelEmitter::transpose(ValueList& square) {
  const auto size = square.size();
  for (size_t half = 1; half < size; half *= 2) {
    std::vector<int> low, high;
    for (size_t lane = 0; lane < size; ++lane) {
      const bool second = (lane & half) != 0;
      low.push_back(static_cast<int>(second ? size + lane - half : lane));
      high.push_back(static_cast<int>(second ? size + lane : lane + half));
    }
    for (size_t i = 0; i < size; ++i) {
      if ((i & half) != 0) continue;
      llvm::Value *const a = square[i], *const b = square[i + half];
      square[i] = b_.CreateShuffleVector(a, b, low);
      square[i + half] = b_.CreateShuffleVector(a, b, high);
    }
  }
}

llvm::Value* KernelEmitter::positions_mask(size_t count) {
  std::vector<llvm::Constant*> bits;
  for (size_t i = 0; i < static_cast<size_t>(row_lanes_); ++i) bits.push_back(b_.getInt1(i < count));
  return count == static_cast<size_t>(row_lanes_) ? nullptr : llvm::ConstantVector::get(bits);
}

llvm::Value* KernelEmitter::has_row(int r) { return b_.CreateICmpSLT(i64(r), rows_in_group_); }

// The address of row `r` of a group; of a row that is there, if it is not.
llvm::Value* KernelEmitter::row_address(llvm::Value* first_row, int arg, int r) {
  llvm::Value* number = i64(r);
  if (rows_in_group_ != nullptr) number = b_.CreateSelect(has_row(r), number, i64(0));
  return b_.CreateGEP(b_.getInt8Ty(), first_row, b_.CreateMul(number, e_.bytes_to_next_row(arg)));
}

// What args that are transposed in registers hold at these positions, per position and node; null for all other nodes.
std::vector<ElementValues> KernelEmitter::transposed_loads(const Row& row, const NodeList& nodes, int phase,
                                                           const std::vector<Lanes>& positions) {
  std::vector<ElementValues> loaded(positions.size(), ElementValues(kernel_.nodes.size(), nullptr));
  const auto side = static_cast<size_t>(row_lanes_);
  for (const NodeIndex index : nodes) {
    const Node& n = node(index);
    const int since = phases_.kept_since(index);
    if (n.kind != NodeKind::load || !is_transposed_in_registers(n) || (since >= 0 && since < phase)) continue;
    for (size_t first = 0; first < positions.size(); first += side) {
      const size_t count = std::min(side, positions.size() - first);
      const Lanes along{row_lanes_, positions[first].offset, positions_mask(count)};
      ValueList square;
      for (int r = 0; r < row_lanes_; ++r)
        square.push_back(memory_.load_vector(row_address(row.segment[static_cast<size_t>(n.arg)], n.arg, r), n.arg, along));
      transpose(square);
      for (size_t i = 0; i < count; ++i) loaded[first + i][static_cast<size_t>(index)] = square[i];
    }
  }
  return loaded;
}

// The vectors of a store or a column sum, a position each, once there are as many as there are rows or positions.
void KernelEmitter::finish_transpose(const Row& row, RootState& root, llvm::Value* first_position) {
  const Node& n = node(root.node);
  ValueList square = std::move(root.chunk[0]);
  root.chunk[0].clear();
  const Lanes along{row_lanes_, first_position, positions_mask(square.size())};
  square.resize(static_cast<size_t>(row_lanes_), llvm::Constant::getNullValue(square[0]->getType()));
  transpose(square);
  if (n.kind == NodeKind::column_sum) return add_rows_to_columns(root.node, square, along);
  for (int r = 0; r < row_lanes_; ++r) {
    llvm::Value* const address = row_address(row.segment[static_cast<size_t>(n.arg)], n.arg, r);
    const auto write = [&] {
      memory_.store_vector(address, {n.arg, n.type, streams(n.arg)}, square[static_cast<size_t>(r)], along);
    };
    if (rows_in_group_ == nullptr)
      write();
    else
      e_.when(has_row(r), write);
  }
}

// A sum is never -0, so adding 0 for a row that is not there changes nothing.
void KernelEmitter::add_rows_to_columns(NodeIndex root, const ValueList& rows, const Lanes& along) {
  llvm::Type* const type = rows[0]->getType();
  llvm::Value* const zero = llvm::Constant::getNullValue(type);
  const ColumnSums sums = column_sums(root, type, along);
  llvm::Value* sum = sums.so_far;
  for (int r = 0; r < row_lanes_; ++r) {
    llvm::Value* const value = rows[static_cast<size_t>(r)];
    sum = b_.CreateFAdd(sum, rows_in_group_ == nullptr ? value : b_.CreateSelect(has_row(r), value, zero));
  }
  store_column_sums(sums, sum, along);
}

}  // namespace lamina::cpu
