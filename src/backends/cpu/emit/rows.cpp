// Rows and phases. The function walks its rows; per row it walks the inner dims once per phase.
#include "backends/cpu/emit/emit_kernel.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/emit/kernel_emitter.h"
#include "backends/cpu/schedule/tuning.h"
#include "backends/cpu/vector/convert.h"
#include "interface/status.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

void emit_kernel(llvm::Module& module, const std::string& symbol, const kernel::Kernel& kernel, const Schedule& schedule,
                 const TargetFeatures& target) {
  Emission emission(module, symbol, kernel, schedule, target);
  KernelEmitter emitter(emission);
  if (schedule.split)
    emitter.emit_split();
  else if (schedule.transposed)
    emitter.emit_transposed();
  else
    emitter.emit();
}

KernelEmitter::KernelEmitter(Emission& emission)
    : Part(emission), phases_(emission), memory_(emission), row_lanes_(emission.group) {
  column_slot_.assign(kernel_.nodes.size(), -1);
  int slot = 0;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (kernel_.nodes[i].kind == NodeKind::column_sum) column_slot_[i] = slot++;
  }
}

// Tile after tile. The rows of a tile go through each phase before any of them goes through the next one, so that the chain of
// dependent operations at the end of a reduction (folding the lanes, dividing, a square root) overlaps with the next row's
// work.
void KernelEmitter::emit() {
  llvm::Value* const begin = e_.row_begin;
  llvm::Value* const end = e_.row_end;
  const int tile = schedule_.rows_per_tile;
  make_kept_buffers(tile);
  if (has_batches()) begin_batches();
  e_.loop(begin, end, i64(tile), [&](llvm::Value* first) {
    llvm::Value* const left = b_.CreateSub(end, first);
    llvm::Value* const count = tile == 1 ? i64(1) : b_.CreateSelect(b_.CreateICmpSLT(left, i64(tile)), left, i64(tile));
    if (has_batches())
      emit_batched_tile({first, count}, begin);
    else
      emit_tile(first, count, begin);
  });
  end_streams();
  b_.CreateRetVoid();
}

// A buffer per kept node: a tile's rows, each rounded up to whole chunks of lanes.
void KernelEmitter::make_kept_buffers(int rows) {
  const int64_t size = phases_.kept_row_size() * rows * row_lanes_ +
                       kVirtualLanes;  // a walk along lines may read a vector beyond the last element
  kept_buffers_.assign(kernel_.nodes.size(), nullptr);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (phases_.kept_since(static_cast<NodeIndex>(i)) < 0) continue;
    kept_buffers_[i] = e_.alloca_at_entry(llvm::ArrayType::get(e_.type(kernel_.nodes[i].type, 1), static_cast<uint64_t>(size)));
    kept_buffers_[i]->setAlignment(llvm::Align(kKeptAlignment));
  }
}

Row KernelEmitter::begin_row(llvm::Value* row, llvm::Value* place) {
  const size_t nodes = kernel_.nodes.size();
  const ValueList position = e_.row_position(row);
  Row state;
  state.number = row;
  state.place = place;
  for (size_t a = 0; a < kernel_.args.size(); ++a) state.pointers.push_back(e_.row_pointer(static_cast<int>(a), position));
  state.segment = state.pointers;
  state.values.assign(nodes, nullptr);
  state.kept = state.index_base = state.mean_high = state.mean_low = state.shifts = state.values;
  for (size_t i = 0; i < nodes; ++i) {
    if (kept_buffers_[i] == nullptr) continue;
    llvm::Value* const at = b_.CreateMul(place, i64(phases_.kept_row_size() * row_lanes_));
    state.kept[i] = b_.CreateGEP(e_.type(kernel_.nodes[i].type, 1), kept_buffers_[i], at);
  }
  for (size_t i = 0; i < nodes; ++i) {
    if (kernel_.nodes[i].kind != NodeKind::index) continue;
    state.index_base[i] = e_.widen(e_.row_index(kernel_.nodes[i], position), row_lanes_);
    if (!e_.across_rows()) continue;
    auto* const words = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(row_lanes_));
    llvm::Value* const steps =
        b_.CreateMul(b_.CreateStepVector(words), e_.widen(i64(kernel_.nodes[i].coefficients[position.size() - 1]), row_lanes_));
    state.index_base[i] = b_.CreateAdd(state.index_base[i], steps);
  }
  return state;
}

void KernelEmitter::emit_tile(llvm::Value* first, llvm::Value* count, llvm::Value* begin) {
  const int last = kernel_.phase_count() - 1;
  row_state_.assign(row_value_count(kernel_), {});
  for (int phase = 0; phase < last; ++phase) {
    const bool next_is_rare = phase + 1 < last && phases_.may_be_skipped(phase + 1);
    emit_rows(i64(0), count, 1, [&](llvm::Value* place) {
      Row row = begin_row(b_.CreateAdd(first, place), place);
      restore(row, place);
      if (phase == 0) prefetch_ends(row);
      emit_phase({&row}, phase);
      if (next_is_rare) emit_second_walk(row, phase + 1);
      save(row, place);
    });
    if (next_is_rare) ++phase;
  }
  emit_last_phase(first, count, begin);
}

void KernelEmitter::emit_last_phase(llvm::Value* first, llvm::Value* count, llvm::Value* begin) {
  const int last = kernel_.phase_count() - 1;
  const auto finish = [&](llvm::Value* place, int rows) {
    std::vector<Row> group;
    for (int r = 0; r < rows; ++r) {
      llvm::Value* const at = b_.CreateAdd(place, i64(r));
      group.push_back(begin_row(b_.CreateAdd(first, at), at));
      restore(group.back(), at);
      if (last == 0) prefetch_ends(group.back());
    }
    std::vector<Row*> all;
    for (Row& row : group) all.push_back(&row);
    first_of_partials_ = b_.CreateICmpEQ(b_.CreateAdd(first, place), begin);
    emit_phase(all, last);
  };
  // Column sums: two rows share a loop, so that the sums are loaded and stored half as often. Not where the lines of a streamed
  // output begin at other elements in one row than in the next.
  const int together =
      kernel_.has_column_sum() && !schedule_.follows_lines && !e_.across_rows() ? std::min(2, schedule_.rows_per_tile) : 1;
  llvm::Value* const grouped = together == 1 ? count : b_.CreateAnd(count, i64(-together));
  const auto all_rows = [&] {
    emit_rows(i64(0), grouped, together, [&](llvm::Value* place) { finish(place, together); });
    if (together > 1) emit_rows(grouped, count, 1, [&](llvm::Value* place) { finish(place, 1); });
  };
  if (schedule_.strip == 0)
    all_rows();
  else
    emit_strips(first, count, all_rows);
}

// What is known once per row is computed once, not in each strip.
void KernelEmitter::emit_strips(llvm::Value* first, llvm::Value* count, const std::function<void()>& all_rows) {
  const auto compute_row_values = [&](llvm::Value* place) {
    Row row = begin_row(b_.CreateAdd(first, place), place);
    restore(row, place);
    emit_row_values(row, kernel_.phase_count() - 1);
    save(row, place);
  };
  if (!schedule_.split) emit_rows(i64(0), count, 1, compute_row_values);  // of a split row they were with its last sum
  e_.loop(walk_begin(), walk_end(), i64(schedule_.strip), [&](llvm::Value* strip) {
    strip_ = strip;
    all_rows();
  });
  strip_ = nullptr;
}

// A loop over rows of the tile; none where a tile is one row.
void KernelEmitter::emit_rows(llvm::Value* from, llvm::Value* to, int step, const std::function<void(llvm::Value*)>& body) {
  if (schedule_.rows_per_tile == 1 || e_.across_rows())
    body(from);
  else
    e_.loop(from, to, i64(step), body);
}

// What is known once per row waits in memory while other rows, or other threads, go through the phase.
llvm::Value* KernelEmitter::row_slot(size_t slot, llvm::Type* type, llvm::Value* place) {
  if (schedule_.split) return split_slot(place, i64(static_cast<int64_t>(slot)));
  RowState& state = row_state_[slot];
  if (state.of_rows == nullptr)
    state.of_rows = e_.alloca_at_entry(llvm::ArrayType::get(type, static_cast<uint64_t>(schedule_.rows_per_tile)));
  return b_.CreateGEP(type, state.of_rows, place);
}

void KernelEmitter::save(const Row& row, llvm::Value* place) {
  for_each_row_value(row, [&](size_t slot, llvm::Value* value) {
    RowState& state = row_state_[slot];
    if (value == nullptr || value == state.restored || llvm::isa<llvm::Constant>(value)) return;
    state.type = value->getType();
    b_.CreateStore(value, row_slot(slot, state.type, place));
  });
}

void KernelEmitter::restore(Row& row, llvm::Value* place) {
  for_each_row_value(row, [&](size_t slot, llvm::Value*& value) {
    RowState& state = row_state_[slot];
    if (state.type != nullptr) value = state.restored = b_.CreateLoad(state.type, row_slot(slot, state.type, place));
  });
}

void KernelEmitter::emit_phase(std::vector<Row*> rows, int phase) {
  for (Row* row : rows) emit_row_values(*row, phase);
  const NodeList roots = phases_.roots_of(phase);
  if (!roots.empty()) emit_walk(rows, roots, phase);
}

void KernelEmitter::emit_walk(const std::vector<Row*>& rows, const NodeList& roots, int phase) {
  begin_roots(*rows.front(), roots, phase);
  const NodeList nodes = phases_.nodes_for(roots, phase);
  choose_step(nodes, rows.size());
  const Body body = [&](const std::vector<Lanes>& lanes) { emit_body(rows, nodes, phase, lanes); };
  if (!roots_reduce() || e_.inner_rank() > 1) {
    walk_inner(rows, body, roots_reduce() ? std::function<void()>([&] { flush_roots(); }) : nullptr);
  } else {
    const int64_t size = kernel_.row_size(), full = size > kBlock ? (size - 1) / kBlock * kBlock : 0;
    const auto block = [&](llvm::Value* start, int64_t count) {
      for (const auto& [root, values] : emit_block(*rows.front(), phase, body, start, count))
        combine_block(*root, values, start, i64(count));
    };
    if (full > 0) e_.loop(i64(0), i64(full), i64(kBlock), [&](llvm::Value* start) { block(start, kBlock); });
    block(i64(full), size - full);
  }
  finish_roots(*rows.front(), phase);
}

// Only for a row that needs it.
void KernelEmitter::emit_second_walk(Row& row, int phase) {
  emit_second_walk(row, phase, [&](Row& walked) { emit_walk({&walked}, phases_.roots_of(phase), phase); });
}

void KernelEmitter::emit_second_walk(Row& row, int phase, const std::function<void(Row&)>& walk) {
  emit_row_values(row, phase);
  const NodeList roots = phases_.roots_of(phase);
  llvm::Value* needed = b_.getFalse();
  for (const NodeIndex root : roots) needed = b_.CreateOr(needed, any_row(row.values[static_cast<size_t>(root)]));
  Row walked = row;
  llvm::BasicBlock *const before = b_.GetInsertBlock(), *last = nullptr;
  e_.when(needed, [&] {
    walk(walked);
    last = b_.GetInsertBlock();
  });
  std::vector<llvm::Value*> found;
  for_each_row_value(walked, [&](size_t, llvm::Value* value) { found.push_back(value); });
  for_each_row_value(row, [&](size_t slot, llvm::Value*& value) {
    if (value == found[slot]) return;
    llvm::PHINode* const either = b_.CreatePHI(value->getType(), 2);
    either->addIncoming(value, before);
    either->addIncoming(found[slot], last);
    value = either;
  });
  for (const NodeIndex root : roots) row.values[static_cast<size_t>(root)] = nullptr;
}

// One block of the row: what each reduction comes to there. Where mean and variance need a second walk, it follows while the
// block is in the first-level cache.
std::vector<KernelEmitter::BlockResult> KernelEmitter::emit_block(Row& row, int phase, const Body& body, llvm::Value* start,
                                                                  int64_t count) {
  walk_run(row, start, count, body);
  std::vector<BlockResult> results;
  std::vector<RootState*> moments;
  for (RootState& root : roots_) {
    if (root.accumulators.empty()) continue;
    if (root.by_block)
      moments.push_back(&root);
    else
      results.push_back({&root, fold_all(root)});
  }
  for (RootState* root : moments) results.push_back({root, block_moments(row, *root, phase, start, count)});
  return results;
}

ValueList KernelEmitter::block_moments(Row& row, RootState& root, int phase, llvm::Value* start, int64_t count) {
  llvm::Value* const size = f64(static_cast<double>(count));
  const OneWalk found = one_walk(root, fold_all(root), size);
  llvm::AllocaInst* const mean = e_.alloca_at_entry(row_type(kernel::Type::f64));
  llvm::AllocaInst* const deviations = e_.alloca_at_entry(row_type(kernel::Type::f64));
  b_.CreateStore(found.mean, mean);
  b_.CreateStore(found.deviations, deviations);
  e_.when(any_row(found.is_far), [&] {
    split_mean(row, root.node, found.mean);
    const NodeList nodes = phases_.nodes_for({root.node}, phase + 1);
    const std::span<RootState> all = std::exchange(roots_, std::span(&root, 1));
    walk_run(row, start, count, [&](const std::vector<Lanes>& lanes) { emit_body({&row}, nodes, phase + 1, lanes); });
    roots_ = all;
    const ValueList better = second_walk(row, root, fold_all(root), size);
    b_.CreateStore(b_.CreateSelect(found.is_far, better[0], found.mean), mean);
    b_.CreateStore(b_.CreateSelect(found.is_far, better[1], found.deviations), deviations);
  });
  return {b_.CreateLoad(mean->getAllocatedType(), mean), b_.CreateLoad(deviations->getAllocatedType(), deviations)};
}

// A walk that sums nothing may take fewer vectors an iteration, which makes less code of what goes vector by vector anyway: as
// many as fill a line of the narrowest output.
void KernelEmitter::choose_step(const NodeList& nodes, size_t rows) {
  step_ = kVirtualLanes;
  if (e_.across_rows()) {
    const auto transposed = [&](NodeIndex i) { return is_transposed_in_registers(node(i)); };
    const bool transposes =
        std::any_of(nodes.begin(), nodes.end(), transposed) ||
        std::any_of(roots_.begin(), roots_.end(), [&](const RootState& root) { return transposed(root.node); });
    step_ = transposes ? row_lanes_ : phases_.is_heavy(nodes) ? 1 : tuning::kPositionsPerIteration * e_.width / row_lanes_;
    return;
  }
  if (roots_reduce()) return;
  // Vectors of a row that is shorter than a chunk are whole: only such are streamed.
  if (const int64_t row = kernel_.row_size(); row >= e_.width && row < kVirtualLanes)
    step_ = static_cast<int>(row) / e_.width * e_.width;
  if (rows == 1 && !phases_.is_heavy(nodes)) return;
  constexpr int kLineBits = 8 * static_cast<int>(tuning::kLine);
  int narrowest = 64;
  for (const kernel::Arg& arg : kernel_.args) {
    if (arg.output && !arg.column) narrowest = std::min(narrowest, std::max(bits_of(arg.dtype), 8));
  }
  step_ = std::clamp(kLineBits / narrowest, e_.width, step_);
}

}  // namespace lamina::cpu
