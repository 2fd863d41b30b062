// Rows and phases. The function walks its rows; per row it walks the inner dims once per phase.
#include "backends/cpu/emit/emit_kernel.h"

#include <algorithm>
#include <bit>

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
  KernelEmitter emitter(module, symbol, kernel, schedule, target);
  if (schedule.split)
    emitter.emit_split();
  else if (schedule.transposed)
    emitter.emit_transposed();
  else
    emitter.emit();
}

KernelEmitter::KernelEmitter(llvm::Module& module, const std::string& symbol, const kernel::Kernel& kernel,
                             const Schedule& schedule, const TargetFeatures& target)
    : kernel_(kernel), schedule_(schedule), target_(target), context_(module.getContext()), module_(module), b_(context_) {
  wide_ = kernel.computes_in_f64();
  width_ = std::min(kVirtualLanes, schedule.vector_bits / (wide_ ? 64 : 32));
  if (schedule.transposed) row_lanes_ = schedule.rows_per_group;
  auto* const pointer = b_.getPtrTy();
  auto* const word = b_.getInt64Ty();
  auto* const type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, word, word, word, word, pointer}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr("prefer-vector-width", std::to_string(schedule.vector_bits));
  function_->addFnAttr("min-legal-vector-width", std::to_string(schedule.vector_bits));
  call_ = function_->getArg(0);
  inner_begin_ = function_->getArg(3);
  inner_end_ = function_->getArg(4);
  partials_ = function_->getArg(5);
  choose_stores();
  choose_kept_nodes();
  column_slot_.assign(kernel.nodes.size(), -1);
  int slot = 0;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (kernel.nodes[i].kind == NodeKind::column_sum) column_slot_[i] = slot++;
  }
}

llvm::AllocaInst* KernelEmitter::alloca_at_entry(llvm::Type* type) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  return at_entry.CreateAlloca(type);
}

// Tile after tile. The rows of a tile go through each phase before any of them goes through the next one, so that the chain of
// dependent operations at the end of a reduction (folding the lanes, dividing, a square root) overlaps with the next row's
// work.
void KernelEmitter::emit() {
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  llvm::Value* const begin = function_->getArg(1);
  llvm::Value* const end = function_->getArg(2);
  const int tile = schedule_.rows_per_tile;
  make_kept_buffers(tile);
  if (has_batches()) begin_batches();
  emit_loop(begin, end, i64(tile), [&](llvm::Value* first) {
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
  const int64_t size =
      kept_row_size() * rows * row_lanes_ + kVirtualLanes;  // a walk along lines may read a vector beyond the last element
  kept_buffers_.assign(kernel_.nodes.size(), nullptr);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (kept_since_[i] < 0) continue;
    kept_buffers_[i] = alloca_at_entry(llvm::ArrayType::get(llvm_type(kernel_.nodes[i].type, 1), static_cast<uint64_t>(size)));
    kept_buffers_[i]->setAlignment(llvm::Align(kKeptAlignment));
  }
}

int64_t KernelEmitter::kept_row_size() const {
  return (kernel_.row_size() + kVirtualLanes - 1) / kVirtualLanes * kVirtualLanes;
}

// for (i = begin; i < end; i += step) body(i)
void KernelEmitter::emit_loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step,
                              const std::function<void(llvm::Value*)>& body) {
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  auto* const head = llvm::BasicBlock::Create(context_, "loop", function_);
  auto* const after = llvm::BasicBlock::Create(context_, "after", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), head, after);
  b_.SetInsertPoint(head);
  llvm::PHINode* const i = b_.CreatePHI(b_.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  body(i);
  llvm::Value* const next = b_.CreateAdd(i, step, "", true, true);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), head, after);
  b_.SetInsertPoint(after);
}

void KernelEmitter::emit_if(llvm::Value* condition, const std::function<void()>& body) {
  auto* const then = llvm::BasicBlock::Create(context_, "then", function_);
  auto* const after = llvm::BasicBlock::Create(context_, "after", function_);
  b_.CreateCondBr(condition, then, after);
  b_.SetInsertPoint(then);
  body();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

// Along each outer dim.
KernelEmitter::Values KernelEmitter::row_position(llvm::Value* row) {
  const auto outer = static_cast<size_t>(kernel_.outer_rank);
  Values position(outer, row);
  llvm::Value* rest = row;
  for (size_t d = outer; d-- > 1;) {
    llvm::Value* const extent = call_word(kernel_.args.size() + d);
    position[d] = b_.CreateURem(rest, extent);
    rest = b_.CreateUDiv(rest, extent);
  }
  if (outer > 0) position[0] = rest;
  return position;
}

llvm::Value* KernelEmitter::row_pointer(int arg, const Values& position) {
  const auto outer = static_cast<size_t>(kernel_.outer_rank), a = static_cast<size_t>(arg);
  llvm::Value* pointer = b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getInt64Ty(), call_, a));
  if (bits_of(kernel_.args[a].dtype) < 8) pointer = nibble_address(pointer);
  for (size_t d = 0; d < outer; ++d) {
    if (kernel_.args[a].strides[d] == 0) continue;
    llvm::Value* const bytes = call_word(kernel_.args.size() + outer + a * outer + d);
    pointer = b_.CreateGEP(b_.getInt8Ty(), pointer, b_.CreateMul(position[d], bytes));
  }
  return pointer;
}

// The outer dims' part of an index.
llvm::Value* KernelEmitter::row_index(const Node& index, const Values& position) {
  llvm::Value* base = i64(0);
  for (size_t d = 0; d < position.size(); ++d) base = b_.CreateAdd(base, b_.CreateMul(position[d], i64(index.coefficients[d])));
  return base;
}

Row KernelEmitter::begin_row(llvm::Value* row, llvm::Value* place) {
  const size_t nodes = kernel_.nodes.size();
  const Values position = row_position(row);
  Row state;
  state.number = row;
  state.place = place;
  for (size_t a = 0; a < kernel_.args.size(); ++a) state.pointers.push_back(row_pointer(static_cast<int>(a), position));
  state.segment = state.pointers;
  state.values.assign(nodes, nullptr);
  state.kept = state.index_base = state.mean_high = state.mean_low = state.shifts = state.values;
  for (size_t i = 0; i < nodes; ++i) {
    if (kept_buffers_[i] == nullptr) continue;
    llvm::Value* const at = b_.CreateMul(place, i64(kept_row_size() * row_lanes_));
    state.kept[i] = b_.CreateGEP(llvm_type(kernel_.nodes[i].type, 1), kept_buffers_[i], at);
  }
  for (size_t i = 0; i < nodes; ++i) {
    if (kernel_.nodes[i].kind != NodeKind::index) continue;
    state.index_base[i] = widen(row_index(kernel_.nodes[i], position), row_lanes_);
    if (!rows_in_lanes()) continue;
    auto* const words = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(row_lanes_));
    llvm::Value* const steps =
        b_.CreateMul(b_.CreateStepVector(words), widen(i64(kernel_.nodes[i].coefficients[position.size() - 1]), row_lanes_));
    state.index_base[i] = b_.CreateAdd(state.index_base[i], steps);
  }
  return state;
}

void KernelEmitter::emit_tile(llvm::Value* first, llvm::Value* count, llvm::Value* begin) {
  const int last = kernel_.phase_count() - 1;
  row_state_.assign(3 * kernel_.nodes.size(), {});
  for (int phase = 0; phase < last; ++phase) {
    const bool next_is_rare = phase + 1 < last && may_be_skipped(phase + 1);
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
      kernel_.has_column_sum() && !schedule_.follows_lines && !rows_in_lanes() ? std::min(2, schedule_.rows_per_tile) : 1;
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
  emit_loop(walk_begin(), walk_end(), i64(schedule_.strip), [&](llvm::Value* strip) {
    strip_ = strip;
    all_rows();
  });
  strip_ = nullptr;
}

// A loop over rows of the tile; none where a tile is one row.
void KernelEmitter::emit_rows(llvm::Value* from, llvm::Value* to, int step, const std::function<void(llvm::Value*)>& body) {
  if (schedule_.rows_per_tile == 1 || rows_in_lanes())
    body(from);
  else
    emit_loop(from, to, i64(step), body);
}

// What is known once per row waits in memory while other rows, or other threads, go through the phase.
llvm::Value* KernelEmitter::row_slot(size_t slot, llvm::Type* type, llvm::Value* place) {
  if (schedule_.split) return split_slot(place, i64(static_cast<int64_t>(slot)));
  RowState& state = row_state_[slot];
  if (state.of_rows == nullptr)
    state.of_rows = alloca_at_entry(llvm::ArrayType::get(type, static_cast<uint64_t>(schedule_.rows_per_tile)));
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

// A reduction runs in the loop where its operand is known, a column sum in the last loop.
int KernelEmitter::loop_of(NodeIndex index) const {
  const Node& root = node(index);
  if (root.kind == NodeKind::column_sum) return kernel_.phase_count() - 1;
  if (root.kind == NodeKind::store) return store_loop_[static_cast<size_t>(index)];
  return node(root.operands[0]).phase;
}

// A store runs where its value is known; a streamed one in the last loop, which follows the output's lines, if the value is
// there anyway.
void KernelEmitter::choose_stores() {
  const int last = kernel_.phase_count() - 1;
  store_loop_.assign(kernel_.nodes.size(), -1);
  kept_since_.assign(kernel_.nodes.size(), -1);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (kernel_.nodes[i].kind == NodeKind::store) store_loop_[i] = kernel_.nodes[i].phase;
  }
  if (schedule_.streamed.empty()) return;
  const NodeList at_last = nodes_for(roots_of_phase(last), last);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (store_loop_[i] >= 0 && std::find(at_last.begin(), at_last.end(), kernel_.nodes[i].operands[0]) != at_last.end())
      store_loop_[i] = last;
  }
}

KernelEmitter::NodeList KernelEmitter::roots_of_phase(int phase) const {
  NodeList roots;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    const bool reduces = n.kind == NodeKind::reduce || n.kind == NodeKind::moments;
    const bool writes = n.kind == NodeKind::column_sum || (n.kind == NodeKind::store && n.per_element);
    if (!reduces && !writes) continue;
    const int loop = loop_of(static_cast<NodeIndex>(i));
    const bool second_walk = n.kind == NodeKind::moments && !moments_by_block() && loop + 1 == phase;
    if (loop == phase || second_walk) roots.push_back(static_cast<NodeIndex>(i));
  }
  return roots;
}

KernelEmitter::NodeList KernelEmitter::nodes_for(const NodeList& roots, int phase) const {
  std::vector<bool> needed(kernel_.nodes.size(), false);
  for (const NodeIndex root : roots) needed[static_cast<size_t>(node(root).operands[0])] = true;
  NodeList list;
  for (size_t i = kernel_.nodes.size(); i-- > 0;) {
    const Node& n = kernel_.nodes[i];
    if (!needed[i] || !n.per_element) continue;
    list.push_back(static_cast<NodeIndex>(i));
    if (kept_since_[i] >= 0 && kept_since_[i] < phase) continue;  // read back, whatever it was made of
    for (int k = 0; k < kernel::operand_count(n); ++k) needed[static_cast<size_t>(n.operands[static_cast<size_t>(k)])] = true;
  }
  std::reverse(list.begin(), list.end());
  return list;
}

// What is dear to compute (a conversion, a strided access, a transcendental function) and needed in several walks over the row
// is kept as f32 (f64) in a buffer that stays in the first-level cache; on the stack, so what buffers take is bounded.
void KernelEmitter::choose_kept_nodes() {
  kept_since_.assign(kernel_.nodes.size(), -1);
  if (inner_rank() > 1 || schedule_.split) return;
  std::vector<int> first(kernel_.nodes.size(), -1), loops(kernel_.nodes.size(), 0);
  for (int phase = 0; phase < kernel_.phase_count(); ++phase) {
    for (const NodeIndex i : nodes_for(roots_of_phase(phase), phase)) {
      const auto at = static_cast<size_t>(i);
      if (loops[at]++ == 0) first[at] = phase;
    }
  }
  int64_t room = rows_in_lanes() ? tuning::kKeptBytesTransposed : tuning::kKeptBytes / schedule_.rows_per_tile;
  const int64_t bytes = kept_row_size() * row_lanes_ * (wide_ ? 8 : 4);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    if (loops[i] < 2 || (n.type != kernel::Type::f32 && n.type != kernel::Type::f64)) continue;
    const NodeIndex replaced = kept_operand_of_alone(static_cast<NodeIndex>(i));
    if (replaced < 0 && (bytes > room || !is_dear(n))) continue;
    kept_since_[i] = first[i];
    if (replaced < 0)
      room -= bytes;
    else
      kept_since_[static_cast<size_t>(replaced)] = -1;
  }
}

bool KernelEmitter::is_dear(const Node& n) const {
  if (n.kind == NodeKind::map) return computes_function(n);
  if (n.kind != NodeKind::load) return false;
  const kernel::Arg& arg = kernel_.args[static_cast<size_t>(n.arg)];
  const LaneStep step = lane_step(n.arg, arg.strides.back());
  const bool converts = bits_of(arg.dtype) < 32 && (schedule_.keeps_conversions || rows_in_lanes());
  return varies_by_row(kernel_, arg) && (converts || (rows_in_lanes() ? step == LaneStep::other : step != LaneStep::one));
}

// The kept node that is the only element value `index` reads and that nothing else reads: keeping `index` in its stead costs
// the same and spares a step. -1: none.
NodeIndex KernelEmitter::kept_operand_of_alone(NodeIndex index) const {
  const Node& n = node(index);
  if (n.kind != NodeKind::map) return -1;
  NodeIndex only = -1;
  for (int k = 0; k < kernel::operand_count(n); ++k) {
    const NodeIndex operand = n.operands[static_cast<size_t>(k)];
    if (!node(operand).per_element) continue;
    if (only >= 0 || kept_since_[static_cast<size_t>(operand)] < 0) return -1;
    only = operand;
  }
  const auto reads = [&](const Node& other) {
    return std::find(other.operands.begin(), other.operands.end(), only) != other.operands.end();
  };
  return only >= 0 && std::count_if(kernel_.nodes.begin(), kernel_.nodes.end(), reads) == 1 ? only : -1;
}

void KernelEmitter::emit_phase(std::vector<Row*> rows, int phase) {
  for (Row* row : rows) emit_row_values(*row, phase);
  const NodeList roots = roots_of_phase(phase);
  if (!roots.empty()) emit_walk(rows, roots, phase);
}

void KernelEmitter::emit_walk(const std::vector<Row*>& rows, const NodeList& roots, int phase) {
  begin_roots(*rows.front(), roots, phase);
  const NodeList nodes = nodes_for(roots, phase);
  choose_step(nodes, rows.size());
  const Body body = [&](const std::vector<Lanes>& lanes) { emit_body(rows, nodes, phase, lanes); };
  if (!roots_reduce() || inner_rank() > 1) {
    walk_inner(rows, body, roots_reduce() ? std::function<void()>([&] { flush_roots(); }) : nullptr);
  } else {
    const int64_t size = kernel_.row_size(), full = size > kBlock ? (size - 1) / kBlock * kBlock : 0;
    const auto block = [&](llvm::Value* start, int64_t count) {
      for (const auto& [root, values] : emit_block(*rows.front(), phase, body, start, count))
        combine_block(*root, values, start, i64(count));
    };
    if (full > 0) emit_loop(i64(0), i64(full), i64(kBlock), [&](llvm::Value* start) { block(start, kBlock); });
    block(i64(full), size - full);
  }
  finish_roots(*rows.front(), phase);
}

// Whether nothing but second walks for mean and variance runs in this phase.
bool KernelEmitter::may_be_skipped(int phase) const {
  const NodeList roots = roots_of_phase(phase);
  return !roots.empty() && std::all_of(roots.begin(), roots.end(),
                                       [&](NodeIndex i) { return node(i).kind == NodeKind::moments && loop_of(i) < phase; });
}

// Only for a row that needs it.
void KernelEmitter::emit_second_walk(Row& row, int phase) {
  emit_second_walk(row, phase, [&](Row& walked) { emit_walk({&walked}, roots_of_phase(phase), phase); });
}

void KernelEmitter::emit_second_walk(Row& row, int phase, const std::function<void(Row&)>& walk) {
  emit_row_values(row, phase);
  const NodeList roots = roots_of_phase(phase);
  llvm::Value* needed = b_.getFalse();
  for (const NodeIndex root : roots) needed = b_.CreateOr(needed, any_row(row.values[static_cast<size_t>(root)]));
  Row walked = row;
  llvm::BasicBlock *const before = b_.GetInsertBlock(), *last = nullptr;
  emit_if(needed, [&] {
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

KernelEmitter::Values KernelEmitter::block_moments(Row& row, RootState& root, int phase, llvm::Value* start, int64_t count) {
  llvm::Value* const size = f64(static_cast<double>(count));
  const OneWalk found = one_walk(root, fold_all(root), size);
  llvm::AllocaInst* const mean = alloca_at_entry(row_type(kernel::Type::f64));
  llvm::AllocaInst* const deviations = alloca_at_entry(row_type(kernel::Type::f64));
  b_.CreateStore(found.mean, mean);
  b_.CreateStore(found.deviations, deviations);
  emit_if(any_row(found.is_far), [&] {
    split_mean(row, root.node, found.mean);
    const NodeList nodes = nodes_for({root.node}, phase + 1);
    std::vector<RootState> this_one = {root};
    std::swap(roots_, this_one);
    walk_run(row, start, count, [&](const std::vector<Lanes>& lanes) { emit_body({&row}, nodes, phase + 1, lanes); });
    std::swap(roots_, this_one);
    const Values better = second_walk(row, root, fold_all(root), size);
    b_.CreateStore(b_.CreateSelect(found.is_far, better[0], found.mean), mean);
    b_.CreateStore(b_.CreateSelect(found.is_far, better[1], found.deviations), deviations);
  });
  return {b_.CreateLoad(mean->getAllocatedType(), mean), b_.CreateLoad(deviations->getAllocatedType(), deviations)};
}

bool KernelEmitter::has_function(const NodeList& nodes) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeIndex i) { return computes_function(node(i)); });
}

// Many values in flight would spill: heavy bodies go vector by vector, light ones all vectors of a chunk side by side.
bool KernelEmitter::is_heavy(const NodeList& nodes) const {
  return static_cast<int64_t>(nodes.size()) > tuning::kMostNodesSideBySide || has_function(nodes);
}

// A walk that sums nothing may take fewer vectors an iteration, which makes less code of what goes vector by vector anyway: as
// many as fill a line of the narrowest output.
void KernelEmitter::choose_step(const NodeList& nodes, size_t rows) {
  step_ = kVirtualLanes;
  if (rows_in_lanes()) {
    const auto transposed = [&](NodeIndex i) { return is_transposed_in_registers(node(i)); };
    const bool transposes =
        std::any_of(nodes.begin(), nodes.end(), transposed) ||
        std::any_of(roots_.begin(), roots_.end(), [&](const RootState& root) { return transposed(root.node); });
    step_ = transposes ? row_lanes_ : is_heavy(nodes) ? 1 : tuning::kPositionsPerIteration * width_ / row_lanes_;
    return;
  }
  if (roots_reduce()) return;
  // Vectors of a row that is shorter than a chunk are whole: only such are streamed. A walk along lines counts in powers of
  // two.
  if (const int64_t row = kernel_.row_size(); row >= width_ && row < kVirtualLanes)
    step_ = follows_lines() ? static_cast<int>(std::bit_floor(static_cast<uint64_t>(row)))
                            : static_cast<int>(row) / width_ * width_;
  if (rows == 1 && !is_heavy(nodes)) return;
  constexpr int kLineBits = 8 * static_cast<int>(tuning::kLine);
  int narrowest = 64;
  for (const kernel::Arg& arg : kernel_.args) {
    if (arg.output && !arg.column) narrowest = std::min(narrowest, std::max(bits_of(arg.dtype), 8));
  }
  step_ = std::clamp(kLineBits / narrowest, width_, step_);
}

}  // namespace lamina::cpu
