#include "backends/cpu/emit/row_phases.h"

namespace lamina::cpu {

using kernel::NodeIndex;
using kernel::Type;

void RowPhases::emit(const std::vector<Row*>& rows, int phase, llvm::Value* strip) {
  for (Row* row : rows) p_.values.compute_row_values(*row, phase);
  if (!plan_.roots(phase).empty()) walk(rows, phase, strip);
}

void RowPhases::walk(const std::vector<Row*>& rows, int phase, llvm::Value* strip) {
  PhaseWalk walk(p_, rows, plan_.roots(phase), phase);
  const bool reduces = reduce(walk.roots);
  if (reduces && e_.inner_rank() == 1) {
    walk_by_blocks(*rows.front(), walk);
  } else {
    const auto flush = [&] { p_.reductions.fold_to_totals(walk.roots); };
    walk.emit(strip, reduces ? std::function<void()>(flush) : nullptr);
  }
  p_.reductions.finish(*rows.front(), walk.roots, phase);
}

void RowPhases::walk_by_blocks(Row& row, PhaseWalk& walk) {
  const int64_t size = kernel_.row_size(), full = size > kBlock ? (size - 1) / kBlock * kBlock : 0;
  const auto add_block = [&](llvm::Value* start, int64_t count) {
    for (const auto& [root, values] : block(row, walk, start, count)) p_.reductions.add_block(*root, values, start, i64(count));
  };
  if (full > 0) e_.loop(i64(0), i64(full), i64(kBlock), [&](llvm::Value* start) { add_block(start, kBlock); });
  add_block(i64(full), size - full);
}

// If mean and variance need a second walk, it follows while the block is in the first-level cache.
std::vector<RowPhases::BlockResult> RowPhases::block(Row& row, PhaseWalk& walk, llvm::Value* start, int64_t count) {
  walk.run.count(e_, row, start, count, walk.body);
  std::vector<BlockResult> results;
  std::vector<Root*> moments;
  for (Root& root : walk.roots) {
    if (!root.reduces()) continue;
    if (root.by_block)
      moments.push_back(&root);
    else
      results.push_back({&root, p_.reductions.fold(root)});
  }
  for (Root* root : moments) results.push_back({root, block_moments(row, walk, *root, start, count)});
  return results;
}

ValueList RowPhases::block_moments(Row& row, PhaseWalk& walk, Root& root, llvm::Value* start, int64_t count) {
  llvm::Type* const type = e_.type(Type::f64, row.frame.lanes);
  llvm::Value* const size = llvm::ConstantFP::get(type, static_cast<double>(count));
  const Reductions::OneWalk found = p_.reductions.one_walk(root, p_.reductions.fold(root), size);
  llvm::AllocaInst *const mean = e_.alloca_at_entry(type), *const deviations = e_.alloca_at_entry(type);
  b_.CreateStore(found.mean, mean);
  b_.CreateStore(found.deviations, deviations);
  e_.when(any_row(found.is_far), [&] {
    p_.reductions.split_mean(row, root.node, found.mean);
    const int phase = walk.task.phase + 1;
    const WalkTask around_mean{{&row}, plan_.nodes_for({root.node}, phase), std::span(&root, 1), phase, walk.task.step};
    walk.run.count(e_, row, start, count, Body(p_, around_mean));
    const ValueList better = p_.reductions.second_walk(row, root, p_.reductions.fold(root), size);
    b_.CreateStore(b_.CreateSelect(found.is_far, better[0], found.mean), mean);
    b_.CreateStore(b_.CreateSelect(found.is_far, better[1], found.deviations), deviations);
  });
  return {b_.CreateLoad(type, mean), b_.CreateLoad(type, deviations)};
}

void RowPhases::second_walk(Row& row, int phase) {
  second_walk(row, phase, [&](Row& walked) { walk({&walked}, phase); });
}

void RowPhases::second_walk(Row& row, int phase, const std::function<void(Row&)>& walk) {
  p_.values.compute_row_values(row, phase);
  const NodeList roots = plan_.roots(phase);
  llvm::Value* needed = b_.getFalse();
  for (const NodeIndex root : roots) needed = b_.CreateOr(needed, any_row(row.value(root)));
  Row walked = row;
  llvm::BasicBlock *const before = b_.GetInsertBlock(), *last = nullptr;
  e_.when(needed, [&] {
    walk(walked);
    last = b_.GetInsertBlock();
  });
  ValueList found;
  for_each_row_value(walked, [&](size_t, llvm::Value* value) { found.push_back(value); });
  for_each_row_value(row, [&](size_t slot, llvm::Value*& value) {
    if (value == found[slot]) return;
    llvm::PHINode* const either = b_.CreatePHI(value->getType(), 2);
    either->addIncoming(value, before);
    either->addIncoming(found[slot], last);
    value = either;
  });
  for (const NodeIndex root : roots) row.value(root) = nullptr;
}

}  // namespace lamina::cpu
