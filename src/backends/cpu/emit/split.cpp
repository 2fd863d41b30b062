// The split schedule: threads share a row block by block. What a row knows between the steps, and what its blocks come to, lies
// in the row's state: a word per row value, then per result of a phase a word per block.
#include <algorithm>
#include <cstddef>

#include "backends/cpu/emit/kernel_emitter.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeKind;

namespace {

int64_t block_count(const kernel::Kernel& kernel) { return (kernel.row_size() + kBlock - 1) / kBlock; }

}  // namespace

int64_t split_state_bytes(const kernel::Kernel& kernel) {
  using tuning::kLine;
  const int64_t reductions = std::count_if(kernel.nodes.begin(), kernel.nodes.end(), [](const Node& n) {
    return n.kind == NodeKind::reduce || n.kind == NodeKind::moments;
  });
  const int64_t words = static_cast<int64_t>(row_value_count(kernel)) + 2 * reductions * block_count(kernel);
  return (words * 8 + kLine - 1) / kLine * kLine;
}

void KernelEmitter::emit_split() {
  llvm::Value* const split = e_.column_sums;
  const auto field = [&](llvm::Type* type, size_t offset) {
    return b_.CreateLoad(type, b_.CreateConstGEP1_64(b_.getInt64Ty(), split, offset / sizeof(int64_t)));
  };
  llvm::Value* const step = field(b_.getInt64Ty(), offsetof(SplitCall, step));
  llvm::Value* const block_begin = field(b_.getInt64Ty(), offsetof(SplitCall, block_begin));
  rows_ahead_ = field(b_.getInt64Ty(), offsetof(SplitCall, rows_ahead));
  e_.column_sums = field(b_.getPtrTy(), offsetof(SplitCall, column_sums));
  split_states_ = field(b_.getPtrTy(), offsetof(SplitCall, row_states));
  make_kept_buffers(1);
  row_state_.assign(row_value_count(kernel_), {});
  auto* const done = llvm::BasicBlock::Create(e_.context, "done", e_.function);
  const int phases = kernel_.phase_count();
  llvm::SwitchInst* const choice = b_.CreateSwitch(step, done, static_cast<unsigned>(2 * phases));
  for (int s = 0; s < 2 * phases; ++s) {
    auto* const block = llvm::BasicBlock::Create(e_.context, s % 2 == 0 ? "walk" : "finish", e_.function);
    choice->addCase(b_.getInt64(static_cast<uint64_t>(s)), block);
    b_.SetInsertPoint(block);
    stores_row_values_ = s + 1 == 2 * phases;  // in the last finish alone: every thread walks
    if (s % 2 != 0)
      for_each_split_row([&](Row& row) { emit_split_finish(row, s / 2); });
    else if (phases_.reduces(phases_.roots_of(s / 2))) {
      for_each_split_row([&](Row& row) {
        first_of_partials_ = b_.CreateICmpEQ(row.number, block_begin);
        emit_split_walk(row, s / 2);
      });
    } else if (s / 2 + 1 == phases)
      emit_split_last_walk(block_begin);
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
  b_.CreateRetVoid();
}

// Of all rows of the group, with what is known of each.
void KernelEmitter::for_each_split_row(const std::function<void(Row&)>& body) {
  llvm::Value* const first = e_.row_begin;
  e_.loop(i64(0), b_.CreateSub(e_.row_end, first), i64(1), [&](llvm::Value* place) {
    Row row = begin_row(b_.CreateAdd(first, place), place);
    restore(row, place);
    body(row);
  });
}

// A word of the state of the row at `place`.
llvm::Value* KernelEmitter::split_slot(llvm::Value* place, llvm::Value* word) {
  return b_.CreateGEP(b_.getInt64Ty(), split_states_,
                      b_.CreateAdd(b_.CreateMul(place, i64(split_state_bytes(kernel_) / 8)), word));
}

// Where result number `result` of the phase stands for block `block` (i64).
llvm::Value* KernelEmitter::block_slot(const Row& row, size_t result, llvm::Value* block) {
  const auto words = static_cast<int64_t>(row_value_count(kernel_)) + static_cast<int64_t>(result) * block_count(kernel_);
  return split_slot(row.place, b_.CreateAdd(i64(words), block));
}

void KernelEmitter::emit_split_walk(Row& row, int phase) {
  emit_row_values(row, phase);
  const NodeList roots = phases_.roots_of(phase);
  begin_roots(row, roots, phase);
  const NodeList nodes = phases_.nodes_for(roots, phase);
  choose_step(nodes, 1);
  const Body body = [&](const std::vector<Lanes>& lanes) { emit_body({&row}, nodes, phase, lanes); };
  const auto block = [&](llvm::Value* start, int64_t count) {
    std::vector<BlockResult> results = emit_block(row, phase, body, start, count);
    std::sort(results.begin(), results.end(),
              [](const BlockResult& a, const BlockResult& b) { return a.root < b.root; });  // as they are read
    size_t result = 0;
    for (const BlockResult& of_root : results) {
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

// Tile after tile, as one thread alone would, but for the columns that are not this thread's.
void KernelEmitter::emit_split_last_walk(llvm::Value* block_begin) {
  llvm::Value *const first = e_.row_begin, *const states = split_states_, *const tile = i64(schedule_.rows_per_tile);
  llvm::Value* const rows = b_.CreateSub(e_.row_end, first);
  e_.loop(i64(0), rows, tile, [&](llvm::Value* at) {
    split_states_ = split_slot(at, i64(0));
    llvm::Value* const count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(rows, at), tile);
    emit_last_phase(b_.CreateAdd(first, at), count, block_begin);
  });
  split_states_ = states;
}

// Also what the next walk needs once per row.
void KernelEmitter::emit_split_finish(Row& row, int phase) {
  emit_row_values(row, phase);
  const NodeList roots = phases_.roots_of(phase);
  begin_roots(row, roots, phase);
  if (roots_reduce()) {
    const int64_t size = kernel_.row_size();
    e_.loop(i64(0), i64(block_count(kernel_)), i64(1), [&](llvm::Value* block) {
      llvm::Value* const before = b_.CreateMul(block, i64(kBlock));
      llvm::Value* const left = b_.CreateSub(i64(size), before);
      llvm::Value* const count = b_.CreateSelect(b_.CreateICmpSLT(left, i64(kBlock)), left, i64(kBlock));
      size_t result = 0;
      for (const RootState& root : roots_) {
        ValueList values;
        for (size_t i = 0; i < root.totals.size(); ++i) {
          llvm::Type* const type = root.by_block ? b_.getDoubleTy() : e_.type(root.accumulators[i]->type(), 1);
          values.push_back(b_.CreateLoad(type, block_slot(row, result++, block)));
        }
        if (!values.empty()) combine_block(root, values, before, count);
      }
    });
    finish_roots(row, phase);
  }
  if (phase + 1 < kernel_.phase_count()) emit_row_values(row, phase + 1);
  save(row, row.place);
}

}  // namespace lamina::cpu
