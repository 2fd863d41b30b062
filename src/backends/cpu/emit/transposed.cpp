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
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  llvm::Value* const begin = function_->getArg(1);
  llvm::Value* const end = function_->getArg(2);
  make_kept_buffers(1);
  const size_t lane_dim = static_cast<size_t>(kernel_.outer_rank) - 1;
  llvm::Value* const extent =
      b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), call_, kernel_.args.size() + lane_dim));
  llvm::AllocaInst* const next = alloca_at_entry(b_.getInt64Ty());
  b_.CreateStore(begin, next);
  auto* const head = llvm::BasicBlock::Create(context_, "rows", function_);
  auto* const body = llvm::BasicBlock::Create(context_, "group", function_);
  auto* const after = llvm::BasicBlock::Create(context_, "after", function_);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::Value* const first = b_.CreateLoad(b_.getInt64Ty(), next);
  b_.CreateCondBr(b_.CreateICmpSLT(first, end), body, after);
  b_.SetInsertPoint(body);
  const auto least = [&](llvm::Value* x, llvm::Value* y) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y); };
  llvm::Value* const left = least(b_.CreateSub(extent, b_.CreateURem(first, extent)), b_.CreateSub(end, first));
  llvm::Value* const count = least(left, i64(row_lanes_));
  llvm::Value* const is_full = b_.CreateICmpEQ(count, i64(row_lanes_));
  const auto full_group = [&] {
    next_group_ = begin_row(b_.CreateAdd(first, i64(row_lanes_)), i64(0)).pointers;
    emit_tile(first, i64(1), begin);
    next_group_.clear();
  };
  const auto part_of_group = [&] {
    auto* const words = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(row_lanes_));
    rows_in_group_ = count;
    row_mask_ = b_.CreateICmpSLT(b_.CreateStepVector(words), widen(count, row_lanes_));
    emit_tile(first, i64(1), begin);
    rows_in_group_ = row_mask_ = nullptr;
  };
  if (schedule_.whole_groups) {
    full_group();
  } else {
    emit_if(is_full, full_group);
    emit_if(b_.CreateNot(is_full), part_of_group);
  }
  b_.CreateStore(b_.CreateAdd(first, count), next);
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
  b_.CreateRetVoid();
}

bool KernelEmitter::is_transposed_in_registers(int arg) const {
  return rows_in_lanes() && schedule_.lane_steps[static_cast<size_t>(arg)] == LaneStep::other &&
         kernel_.args[static_cast<size_t>(arg)].strides.back() == 1;
}

bool KernelEmitter::is_transposed_in_registers(const Node& n) const {
  if (n.kind == NodeKind::column_sum) return rows_in_lanes();
  return (n.kind == NodeKind::load || n.kind == NodeKind::store) && n.per_element && is_transposed_in_registers(n.arg);
}

// Bytes from a row to the next one of the group.
llvm::Value* KernelEmitter::bytes_to_next_row(int arg) {
  const auto outer = static_cast<size_t>(kernel_.outer_rank);
  return b_.CreateLoad(b_.getInt64Ty(),
                       b_.CreateConstGEP1_64(b_.getInt64Ty(), call_,
                                             kernel_.args.size() + outer + static_cast<size_t>(arg) * outer + outer - 1));
}

std::vector<Lanes> KernelEmitter::positions_from(llvm::Value* offset, int count) {
  if (!rows_in_lanes()) return chunk_at(offset, count);
  std::vector<Lanes> positions;
  for (int i = 0; i < count; ++i) positions.push_back({row_lanes_, b_.CreateAdd(offset, i64(i)), row_mask_});
  return positions;
}

// `count` positions from `begin`. Lanes in memory start anew here; not where several segments fill them.
void KernelEmitter::walk_positions(llvm::Value* begin, int64_t count, const Body& body) {
  if (!roots_reduce() || inner_rank() > 1) return walk_in_order(begin, count, body);
  if (step_ < row_lanes_ && count >= kVirtualLanes) return walk_lanes(begin, count, body);
  for (RootState& root : roots_) {
    for (Accumulator& accumulator : root.accumulators) reset_lane_array(accumulator);
  }
  walk_in_order(begin, count, body);
}

void KernelEmitter::walk_in_order(llvm::Value* begin, int64_t count, const Body& body) {
  const int64_t whole = count / step_ * step_;
  if (whole > 0)
    emit_loop(begin, b_.CreateAdd(begin, i64(whole)), i64(step_), [&](llvm::Value* at) { body(positions_from(at, step_)); });
  if (count > whole) body(positions_from(b_.CreateAdd(begin, i64(whole)), static_cast<int>(count - whole)));
}

// Lane after lane, each from the block's begin to its end in a register. Lanes that the fold would join first, 32 apart, go
// together and are joined at once: half of the lanes never exist in memory.
void KernelEmitter::walk_lanes(llvm::Value* begin, int64_t count, const Body& body) {
  const int usual_step = std::exchange(step_, std::max(1, step_ / 2));
  for (RootState& root : roots_) {
    for (Accumulator& accumulator : root.accumulators) hold_lanes(accumulator);
  }
  emit_loop(i64(0), i64(kVirtualLanes / 2), i64(step_), [&](llvm::Value* lane) {
    for (RootState& root : roots_) {
      for (Accumulator& accumulator : root.accumulators) start_held(accumulator);
    }
    walk_chunks(b_.CreateAdd(begin, lane), count / kVirtualLanes, body);
    walk_tail_chunk(b_.CreateAdd(begin, i64(count - count % kVirtualLanes)), lane, count % kVirtualLanes, body);
    for (RootState& root : roots_) {
      for (Accumulator& accumulator : root.accumulators) join_held(accumulator, lane);
    }
  });
  for (RootState& root : roots_) {
    for (Accumulator& accumulator : root.accumulators) accumulator.held.clear();
  }
  step_ = usual_step;
}

// The held lanes in `chunks` chunks, the first lane of them at `at`; a few chunks an iteration.
void KernelEmitter::walk_chunks(llvm::Value* at, int64_t chunks, const Body& body) {
  const bool is_light = step_ > 1 || row_lanes_ > width_;
  const int64_t most = is_light ? tuning::kChunksOfLightBody : tuning::kChunksOfHeavyBody, iterations = chunks / most;
  const auto iteration = [&](llvm::Value* first, int64_t deep) {
    std::vector<Lanes> positions;
    for (int64_t offset = 0; offset < deep * kVirtualLanes; offset += kVirtualLanes / 2) {
      for (const Lanes& lanes : positions_from(b_.CreateAdd(first, i64(offset)), step_)) positions.push_back(lanes);
    }
    body(positions);
  };
  const int64_t whole = iterations * most * kVirtualLanes;
  if (iterations == 1)
    iteration(at, most);
  else if (iterations > 1)
    emit_loop(at, b_.CreateAdd(at, i64(whole)), i64(most * kVirtualLanes), [&](llvm::Value* first) { iteration(first, most); });
  if (chunks % most != 0) iteration(b_.CreateAdd(at, i64(whole)), chunks % most);
}

// The last chunk, which has `live` of the lanes only.
void KernelEmitter::walk_tail_chunk(llvm::Value* begin, llvm::Value* lane, int64_t live, const Body& body) {
  if (live == 0) return;
  for (int i = 0; i < 2 * step_; ++i) {
    llvm::Value* const at = b_.CreateAdd(lane, i64(i < step_ ? i : kVirtualLanes / 2 + i - step_));
    first_held_ = static_cast<size_t>(i);
    emit_if(b_.CreateICmpSLT(at, i64(live)), [&] { body(positions_from(b_.CreateAdd(begin, at), 1)); });
  }
  first_held_ = 0;
}

// A range known at run time only.
void KernelEmitter::walk_position_range(llvm::Value* begin, llvm::Value* end, const Body& body) {
  llvm::Value* const iterations = b_.CreateSDiv(b_.CreateSub(end, begin), i64(step_));
  llvm::Value* const rest = b_.CreateAdd(begin, b_.CreateMul(iterations, i64(step_)));
  emit_loop(begin, rest, i64(step_), [&](llvm::Value* at) { body(positions_from(at, step_)); });
  emit_loop(rest, end, i64(1), [&](llvm::Value* at) { body(positions_from(at, 1)); });
}

// Element j of vector i becomes element i of vector j.
void KernelEmitter::transpose(Values& square) {
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
  return b_.CreateGEP(b_.getInt8Ty(), first_row, b_.CreateMul(number, bytes_to_next_row(arg)));
}

// What args that are transposed in registers hold at these positions, per position and node; null for all other nodes.
std::vector<KernelEmitter::ElementValues> KernelEmitter::transposed_loads(const Row& row, const NodeList& nodes, int phase,
                                                                          const std::vector<Lanes>& positions) {
  std::vector<ElementValues> loaded(positions.size(), ElementValues(kernel_.nodes.size(), nullptr));
  const auto side = static_cast<size_t>(row_lanes_);
  for (const NodeIndex index : nodes) {
    const Node& n = node(index);
    const int since = kept_since_[static_cast<size_t>(index)];
    if (n.kind != NodeKind::load || !is_transposed_in_registers(n) || (since >= 0 && since < phase)) continue;
    for (size_t first = 0; first < positions.size(); first += side) {
      const size_t count = std::min(side, positions.size() - first);
      const Lanes along{row_lanes_, positions[first].offset, positions_mask(count)};
      Values square;
      for (int r = 0; r < row_lanes_; ++r)
        square.push_back(load_vector(row_address(row.segment[static_cast<size_t>(n.arg)], n.arg, r), n.arg, along));
      transpose(square);
      for (size_t i = 0; i < count; ++i) loaded[first + i][static_cast<size_t>(index)] = square[i];
    }
  }
  return loaded;
}

// The vectors of a store or a column sum, a position each, once there are as many as there are rows or positions.
void KernelEmitter::finish_transpose(const Row& row, RootState& root, llvm::Value* first_position) {
  const Node& n = node(root.node);
  Values square = std::move(root.chunk[0]);
  root.chunk[0].clear();
  const Lanes along{row_lanes_, first_position, positions_mask(square.size())};
  square.resize(static_cast<size_t>(row_lanes_), llvm::Constant::getNullValue(square[0]->getType()));
  transpose(square);
  if (n.kind == NodeKind::column_sum) return add_rows_to_columns(root.node, square, along);
  for (int r = 0; r < row_lanes_; ++r) {
    llvm::Value* const address = row_address(row.segment[static_cast<size_t>(n.arg)], n.arg, r);
    const auto write = [&] { store_vector(address, n.arg, square[static_cast<size_t>(r)], n.type, along); };
    if (rows_in_group_ == nullptr)
      write();
    else
      emit_if(has_row(r), write);
  }
}

// A sum is never -0, so adding 0 for a row that is not there changes nothing.
void KernelEmitter::add_rows_to_columns(NodeIndex root, const Values& rows, const Lanes& along) {
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

// ---- accumulators: an array of vectors, element i of a run in vector i mod 64

int KernelEmitter::lanes_in_use() const {
  const int64_t run = inner_rank() == 1 ? kernel_.row_size() : kernel_.extents.back();
  return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(run, 1, kVirtualLanes))));
}

llvm::Value* KernelEmitter::lane_slot(const Accumulator& accumulator, llvm::Value* lane) {
  return b_.CreateGEP(row_type(accumulator.type), accumulator.lanes[0], lane);
}

void KernelEmitter::hold_lanes(Accumulator& accumulator) {
  for (int i = 0; i < 2 * step_; ++i) accumulator.held.push_back(alloca_at_entry(row_type(accumulator.type)));
}

void KernelEmitter::start_held(const Accumulator& accumulator) {
  for (llvm::AllocaInst* const lane : accumulator.held)
    b_.CreateStore(identity(accumulator.combine, lane->getAllocatedType()), lane);
}

void KernelEmitter::join_held(Accumulator& accumulator, llvm::Value* first) {
  const auto lane = [&](int i) { return b_.CreateLoad(row_type(accumulator.type), accumulator.held[static_cast<size_t>(i)]); };
  for (int i = 0; i < step_; ++i) {
    b_.CreateStore(combine(accumulator.combine, lane(i), lane(step_ + i)), lane_slot(accumulator, b_.CreateAdd(first, i64(i))));
  }
  accumulator.in_memory = kVirtualLanes / 2;
}

void KernelEmitter::reset_lane_array(Accumulator& accumulator) {
  llvm::Value* const value = identity(accumulator.combine, row_type(accumulator.type));
  accumulator.in_memory = lanes_in_use();
  for_each_lane(accumulator.in_memory, [&](llvm::Value* lane) { b_.CreateStore(value, lane_slot(accumulator, lane)); });
}

// Lanes beyond a short row's end hold the identity; the levels of the tree that would only add them are left out. The upper
// levels share their code.
llvm::Value* KernelEmitter::fold_lane_array(Accumulator& accumulator) {
  llvm::Type* const type = row_type(accumulator.type);
  const auto join = [&](llvm::Value* lane, llvm::Value* half) {
    llvm::Value* const low = lane_slot(accumulator, lane);
    llvm::Value* const high = lane_slot(accumulator, b_.CreateAdd(lane, half));
    b_.CreateStore(combine(accumulator.combine, b_.CreateLoad(type, low), b_.CreateLoad(type, high)), low);
  };
  using tuning::kLanesPerIteration;
  const int levels = std::bit_width(static_cast<unsigned>(accumulator.in_memory / kLanesPerIteration)) - 1;
  emit_loop(i64(0), i64(levels), i64(1), [&](llvm::Value* level) {
    llvm::Value* const half = b_.CreateLShr(i64(accumulator.in_memory / 2), level);
    emit_loop(i64(0), half, i64(kLanesPerIteration), [&](llvm::Value* lane) {
      for (int i = 0; i < kLanesPerIteration; ++i) join(b_.CreateAdd(lane, i64(i)), half);
    });
  });
  for (int half = std::min(accumulator.in_memory, kLanesPerIteration) / 2; half >= 1; half /= 2) {
    for (int lane = 0; lane < half; ++lane) join(i64(lane), i64(half));
  }
  llvm::Value* const folded = b_.CreateLoad(type, accumulator.lanes[0]);
  if (inner_rank() > 1) reset_lane_array(accumulator);
  return folded;
}

// lane 0 .. count - 1, a few in an iteration; count is a power of two.
void KernelEmitter::for_each_lane(int count, const std::function<void(llvm::Value*)>& body) {
  const int step = std::min(count, tuning::kLanesPerIteration);
  const auto iteration = [&](llvm::Value* first) {
    for (int i = 0; i < step; ++i) body(b_.CreateAdd(first, i64(i)));
  };
  if (count == step)
    iteration(i64(0));
  else
    emit_loop(i64(0), i64(count), i64(step), iteration);
}

}  // namespace lamina::cpu
