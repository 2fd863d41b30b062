// The split schedule: threads share a row block by block. The row's state contains its values between the steps and the
// results of its blocks: a word per row value, then per result of a phase one word per block.
#include <algorithm>
#include <cstddef>
#include <optional>

#include "backends/cpu/emit/schedules.h"
#include "backends/cpu/emit/split_call.h"
#include "backends/cpu/emit/tiles.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeKind;

namespace {

int64_t block_count(const kernel::Kernel& kernel) { return (kernel.row_size() + kBlock - 1) / kBlock; }

class SplitRows : private Part {
 public:
  explicit SplitRows(Emission& emission);
  void emit();

 private:
  void emit_step(int step);
  void emit_walk(Row& row, int phase);
  void emit_last_walk(const Tile& rows);
  void emit_finish(Row& row, int phase);
  void add_block(const Row& row, const std::vector<Root>& roots, llvm::Value* block);
  void for_each_row(const Tile& rows, const std::function<void(Row&)>& body);
  // The address of result number `result` of the phase for block `block` (i64).
  llvm::Value* block_slot(const Row& row, size_t result, llvm::Value* block);

  Parts p_;
  RowPhases row_phases_;
  Tiles tiles_;
  llvm::Value *step_ = nullptr, *block_begin_ = nullptr;  // fields of the SplitCall
  std::optional<RowStore> states_;
  std::vector<bool> all_but_stores_;  // per node
};

// The function's last argument points to a SplitCall, which has the address of the column sums.
SplitRows::SplitRows(Emission& emission) : Part(emission), p_(emission), row_phases_(p_), tiles_(p_, row_phases_) {
  llvm::Value* const call = e_.column_sums;
  const auto field = [&](llvm::Type* type, size_t offset) {
    return b_.CreateLoad(type, b_.CreateConstGEP1_64(b_.getInt64Ty(), call, offset / sizeof(int64_t)));
  };
  step_ = field(b_.getInt64Ty(), offsetof(SplitCall, step));
  block_begin_ = field(b_.getInt64Ty(), offsetof(SplitCall, block_begin));
  e_.rows_ahead = field(b_.getInt64Ty(), offsetof(SplitCall, rows_ahead));
  e_.column_sums = field(b_.getPtrTy(), offsetof(SplitCall, column_sums));
  states_.emplace(e_, field(b_.getPtrTy(), offsetof(SplitCall, row_states)));
  for (const Node& n : kernel_.nodes) all_but_stores_.push_back(n.kind != NodeKind::store);
}

void SplitRows::emit() {
  auto* const done = llvm::BasicBlock::Create(e_.context, "done", e_.function);
  const int steps = 2 * plan_.count();
  llvm::SwitchInst* const choice = b_.CreateSwitch(step_, done, static_cast<unsigned>(steps));
  for (int step = 0; step < steps; ++step) {
    auto* const block = llvm::BasicBlock::Create(e_.context, step % 2 == 0 ? "walk" : "finish", e_.function);
    choice->addCase(b_.getInt64(static_cast<uint64_t>(step)), block);
    b_.SetInsertPoint(block);
    emit_step(step);
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
}

void SplitRows::emit_step(int step) {
  const int phase = step / 2;
  const bool is_last = step + 1 == 2 * plan_.count();
  Tile rows{e_.row_begin, nullptr, block_begin_, &*states_};
  // stores run only in the last finish, because every thread runs the walk
  rows.computes = is_last ? nullptr : &all_but_stores_;
  if (step % 2 != 0)
    for_each_row(rows, [&](Row& row) { emit_finish(row, phase); });
  else if (plan_.reduces(phase)) {
    for_each_row(rows, [&](Row& row) {
      row.begins_columns = b_.CreateICmpEQ(row.number, block_begin_);
      emit_walk(row, phase);
    });
  } else if (phase == plan_.last())
    emit_last_walk(rows);
}

void SplitRows::for_each_row(const Tile& rows, const std::function<void(Row&)>& body) {
  e_.loop(i64(0), b_.CreateSub(e_.row_end, e_.row_begin), i64(1), [&](llvm::Value* place) {
    Row row = tiles_.begin_row(rows, place);
    body(row);
  });
}

llvm::Value* SplitRows::block_slot(const Row& row, size_t result, llvm::Value* block) {
  const auto words = static_cast<int64_t>(row_value_count(kernel_)) + static_cast<int64_t>(result) * block_count(kernel_);
  return states_->state_word(row.place, b_.CreateAdd(i64(words), block));
}

void SplitRows::emit_walk(Row& row, int phase) {
  p_.values.compute_row_values(row, phase);
  PhaseWalk walk(p_, {&row}, plan_.roots(phase), phase);
  const auto block = [&](llvm::Value* start, int64_t count) {
    std::vector<RowPhases::BlockResult> results = row_phases_.block(row, walk, start, count);
    std::sort(results.begin(), results.end(),
              [](const auto& a, const auto& b) { return a.root < b.root; });  // in the order in which they are read
    size_t result = 0;
    for (const auto& of_root : results) {
      for (llvm::Value* value : of_root.values)
        b_.CreateStore(value, block_slot(row, result++, b_.CreateUDiv(start, i64(kBlock))));
    }
  };
  const int64_t size = kernel_.row_size(), full = (size - 1) / kBlock * kBlock;
  llvm::Value* const has_rest = b_.CreateICmpSGT(e_.inner_end, i64(full));
  e_.loop(e_.inner_begin, b_.CreateSelect(has_rest, i64(full), e_.inner_end), i64(kBlock),
          [&](llvm::Value* start) { block(start, kBlock); });
  e_.when(has_rest, [&] { block(i64(full), size - full); });
}

// Tile after tile, as in the schedule along rows, but only for the columns of this thread.
void SplitRows::emit_last_walk(const Tile& all) {
  llvm::Value* const rows_per_tile = i64(schedule_.rows_per_tile);
  llvm::Value* const rows = b_.CreateSub(e_.row_end, e_.row_begin);
  e_.loop(i64(0), rows, rows_per_tile, [&](llvm::Value* at) {
    RowStore states = states_->from_row(at);
    Tile tile = all;
    tile.count = e_.smaller(b_.CreateSub(rows, at), rows_per_tile);
    tile.first = b_.CreateAdd(e_.row_begin, at);
    tile.store = &states;
    tiles_.emit_last_phase(tile);
  });
}

// Also computes the row values that the next walk needs.
void SplitRows::emit_finish(Row& row, int phase) {
  p_.values.compute_row_values(row, phase);
  const std::vector<Root> roots = p_.reductions.begin(row, plan_.roots(phase), phase);
  if (reduce(roots)) {
    e_.loop(i64(0), i64(block_count(kernel_)), i64(1), [&](llvm::Value* block) { add_block(row, roots, block); });
    p_.reductions.finish(row, roots, phase);
  }
  if (phase < plan_.last()) p_.values.compute_row_values(row, phase + 1);
  states_->save(row);
}

void SplitRows::add_block(const Row& row, const std::vector<Root>& roots, llvm::Value* block) {
  llvm::Value* const before = b_.CreateMul(block, i64(kBlock));
  llvm::Value* const left = b_.CreateSub(i64(kernel_.row_size()), before);
  llvm::Value* const count = b_.CreateSelect(b_.CreateICmpSLT(left, i64(kBlock)), left, i64(kBlock));
  size_t result = 0;
  for (const Root& root : roots) {
    ValueList values;
    for (const auto& accumulator : root.accumulators) {
      llvm::Type* const type = root.by_block ? b_.getDoubleTy() : e_.type(accumulator->type(), 1);
      values.push_back(b_.CreateLoad(type, block_slot(row, result++, block)));
    }
    if (root.reduces()) p_.reductions.add_block(root, values, before, count);
  }
}

}  // namespace

int64_t split_state_bytes(const kernel::Kernel& kernel) {
  using tuning::kLine;
  const int64_t reductions = std::count_if(kernel.nodes.begin(), kernel.nodes.end(), [](const Node& n) {
    return n.kind == NodeKind::reduce || n.kind == NodeKind::moments;
  });
  const int64_t words = static_cast<int64_t>(row_value_count(kernel)) + 2 * reductions * block_count(kernel);
  return (words * 8 + kLine - 1) / kLine * kLine;
}

void emit_split_rows(Emission& emission) { SplitRows(emission).emit(); }

}  // namespace lamina::cpu
