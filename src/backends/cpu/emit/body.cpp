#include "backends/cpu/emit/body.h"

#include <algorithm>

#include "backends/cpu/emit/register_pressure.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

Body::Body(Parts& parts, const WalkTask& task)
    : Part(parts.e),
      p_(parts),
      task_(task),
      streams_(!schedule_.streamed.empty() && !reduce(task.roots)),
      passes_(parts.values.any_takes_chunks(task.nodes) ? 1 : passes_over_lanes(parts.e, task)),
      together_(std::max(vectors_together(), vectors_of_stores())) {}

size_t Body::vectors_together() const {
  constexpr size_t kAll = kVirtualLanes;
  if (is_short_function()) return kAll;
  if (e_.across_rows()) return may_spill(e_, task_.nodes) || task_.step == e_.group ? 1 : kAll;
  if (plan_.has_function(task_.nodes)) return e_.target->has_many_registers ? 1 : tuning::kFunctionsSideBySide;
  return task_.rows.size() > 1 || may_spill(e_, task_.nodes) ? 1 : vectors_side_by_side(e_, task_);
}

// A function that is followed by little more than a sum, as in a softmax. Its operations depend on each other, so
// interleaving vectors keeps the execution units busy, if there are enough registers.
bool Body::is_short_function() const {
  constexpr size_t kFewNodes = 4;
  return e_.target->has_many_registers && !e_.across_rows() && reduce(task_.roots) && task_.nodes.size() <= kFewNodes;
}

bool Body::non_temporal(int arg) const {
  return streams_ && std::find(schedule_.streamed.begin(), schedule_.streamed.end(), arg) != schedule_.streamed.end();
}

void Body::operator()(const std::vector<Lanes>& lanes, size_t run) const {
  at_part(lanes, 0, lanes.size());
  if (e_.across_rows()) p_.prefetch.prefetch_across(*task_.rows.front(), lanes, run, task_.phase);
}

void Body::in_pass(const std::vector<Lanes>& lanes, size_t number) const {
  const size_t vectors = std::max<size_t>(kVirtualLanes / static_cast<size_t>(e_.width) / passes_, 1);
  at_part(lanes, std::min(number * vectors, lanes.size()), std::min((number + 1) * vectors, lanes.size()));
}

// Two vectors that are stored as one stay together. The stores to a line wait for those to the same part of another page, where
// the rows of the other streamed args may be, so several lines of each follow each other; a vector that is a line needs no
// other.
size_t Body::vectors_of_stores() const {
  if (e_.across_rows()) return 1;
  size_t streams = 0, of_stores = 1, of_streams = 1;
  for (const Root& root : task_.roots) {
    const Node& n = node(root.node);
    if (n.kind != NodeKind::store) continue;
    if (p_.memory.stores_pairs(n.arg)) of_stores = 2;
    if (!non_temporal(n.arg)) continue;
    ++streams;
    const int64_t bytes = bytes_of(kernel_.arg(n.arg).dtype, e_.width);
    of_streams = std::max(of_streams, static_cast<size_t>(tuning::kLinesOfStream * tuning::kLine / bytes));
  }
  const bool in_parts = streams > 1 && !tuning::is_line(vector_bits(e_.target));
  return in_parts ? std::max(of_stores, of_streams) : of_stores;
}

void Body::at_part(const std::vector<Lanes>& lanes, size_t from, size_t to) const {
  AtChunk chunk{lanes, {}, std::vector<PerRow>(task_.roots.size(), PerRow(task_.rows.size()))};
  for (const Row* row : task_.rows) chunk.known.push_back(known_ahead(*row, lanes));
  for (size_t first = from; first < to; first += together_) at_vectors(chunk, first, std::min(together_, to - first));
}

// Values that are computed for several vectors at the same time.
std::vector<ElementValues> Body::known_ahead(const Row& row, const std::vector<Lanes>& lanes) const {
  if (e_.across_rows()) return p_.transpose.load(row, task_.nodes, task_.phase, lanes);
  std::vector<ElementValues> known;
  for (const NodeIndex i : task_.nodes) {
    if (!p_.values.takes_chunks(i) || plan_.is_read_back(i, task_.phase)) continue;
    known.resize(lanes.size(), ElementValues(kernel_.nodes.size(), nullptr));
    const ValueList values = p_.values.values_of_chunk(row, i, lanes);
    for (size_t v = 0; v < lanes.size(); ++v) known[v][static_cast<size_t>(i)] = values[v];
  }
  return known;
}

void Body::at_vectors(AtChunk& chunk, size_t first, size_t count) const {
  const size_t rows = task_.rows.size();
  // values[row][vector][node]
  std::vector<std::vector<ElementValues>> values(rows, std::vector<ElementValues>(count));
  for (size_t r = 0; r < rows; ++r) {
    for (size_t v = 0; v < count; ++v)
      values[r][v] = chunk.known[r].empty() ? ElementValues(kernel_.nodes.size(), nullptr) : chunk.known[r][first + v];
    for (const NodeIndex i : task_.nodes) {
      compute_side_by_side(*task_.rows[r], i, std::span(chunk.lanes).subspan(first, count), values[r]);
      for (size_t v = 0; v < count; ++v) {
        values[r][v][static_cast<size_t>(i)] = live_or_computed(*task_.rows[r], i, chunk.lanes[first + v], values[r][v]);
      }
    }
  }
  if (!e_.across_rows()) p_.prefetch.prefetch_along(task_.rows, task_.nodes, chunk.lanes, first, count, task_.phase);
  for (size_t root = 0; root < task_.roots.size(); ++root) {
    const NodeIndex operand = node(task_.roots[root].node).operands[0];
    PerRow operands(rows);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t v = 0; v < count; ++v) {
        llvm::Value* const known = values[r][v][static_cast<size_t>(operand)];
        operands[r].push_back(known != nullptr ? known : e_.widen(task_.rows[r]->value(operand), chunk.lanes[first + v].width));
      }
    }
    at_root(chunk, root, first, operands);
  }
}

// A function, in cores that do not reorder far enough by themselves.
void Body::compute_side_by_side(const Row& row, NodeIndex index, std::span<const Lanes> vectors,
                                std::vector<ElementValues>& values) const {
  const bool in_order = vectors.size() == 1 || e_.target->has_many_registers || e_.across_rows();
  if (in_order || !p_.values.is_function(index) || plan_.is_read_back(index, task_.phase)) return;
  const ValueList found = p_.values.of_function(row, index, vectors, values);
  for (size_t v = 0; v < vectors.size(); ++v) values[v][static_cast<size_t>(index)] = found[v];
}

llvm::Value* Body::live_address(const Row& row, NodeIndex index, const Lanes& lanes) const {
  return b_.CreateGEP(e_.type(node(index).type, e_.group), row.live[static_cast<size_t>(index)], lanes.offset);
}

llvm::Value* Body::live_or_computed(const Row& row, NodeIndex index, const Lanes& lanes, const ElementValues& known) const {
  const uint64_t bytes = node(index).type == kernel::Type::f64 ? 8 : 4;
  const bool anywhere = streams_ && schedule_.follows_lines;
  const auto align = llvm::Align(anywhere ? bytes : bytes * static_cast<uint64_t>(lanes.width));
  if (plan_.is_read_back(index, task_.phase))
    return b_.CreateAlignedLoad(e_.type(node(index).type, lanes.width), live_address(row, index, lanes), align);
  llvm::Value* const before = known[static_cast<size_t>(index)];
  llvm::Value* const value = before != nullptr ? before : p_.values.element(row, index, lanes, known);
  if (plan_.live_since(index) == task_.phase) b_.CreateAlignedStore(value, live_address(row, index, lanes), align);
  return value;
}

void Body::at_root(AtChunk& chunk, size_t index, size_t first, const PerRow& operands) const {
  Root& root = task_.roots[index];
  const Node& n = node(root.node);
  PerRow& waiting = chunk.waiting[index];
  if (p_.transpose.transposes(n)) return collect_block(chunk, root, waiting, first, operands[0]);
  if (n.kind == NodeKind::store) return store(chunk, n, waiting, first, operands);
  const auto lanes = std::span(chunk.lanes).subspan(first, operands[0].size());
  if (n.kind != NodeKind::column_sum) return p_.reductions.add(*task_.rows.front(), root, task_.phase, operands[0], lanes);
  for (size_t v = 0; v < lanes.size(); ++v) {
    ValueList of_rows;
    for (const ValueList& of_row : operands) of_rows.push_back(of_row[v]);
    p_.columns.add(task_.rows, root.node, of_rows, lanes[v]);
  }
}

void Body::end_segments(size_t dim) const {
  for (Root& root : task_.roots) {
    const Node& n = node(root.node);
    if (n.kind == NodeKind::segment_sum && first_segment_dim(kernel_, kernel_.arg(n.arg)) == dim)
      p_.reductions.end_segment(*task_.rows.front(), root);
  }
}

// Collects the vectors of a store or a column sum, one per position, until there are as many as rows or positions.
void Body::collect_block(const AtChunk& chunk, const Root& root, PerRow& waiting, size_t first,
                         const ValueList& operands) const {
  const Node& n = node(root.node);
  ValueList& positions = waiting[0];
  for (size_t v = 0; v < operands.size(); ++v) {
    positions.push_back(e_.widen(operands[v], chunk.lanes[first + v].width));
    const bool ends_chunk = first + v + 1 == chunk.lanes.size();
    if (!ends_chunk && positions.size() < static_cast<size_t>(e_.group)) continue;
    llvm::Value* const begin = chunk.lanes[first + v + 1 - positions.size()].offset;
    const InRegisterTranspose::Block block = p_.transpose.to_rows(positions, begin);
    positions.clear();
    if (n.kind == NodeKind::column_sum)
      p_.columns.add(*task_.rows.front(), root.node, block);
    else
      p_.transpose.store(*task_.rows.front(), {n.arg, n.type, non_temporal(n.arg)}, block);
  }
}

void Body::store(const AtChunk& chunk, const Node& n, PerRow& waiting, size_t first, const PerRow& operands) const {
  const Store to{n.arg, n.type, non_temporal(n.arg), kernel::range_of(kernel_, n.operands[0])};
  const bool realigned = schedule_.realigns && to.non_temporal;
  if (!realigned && !p_.memory.stores_whole_chunks(n, chunk.lanes)) return store_vectors(chunk, to, first, operands);
  for (size_t v = 0; v < operands[0].size(); ++v) {
    const Lanes& at = chunk.lanes[first + v];
    if (realigned) {
      waiting[0].push_back(operands[0][v]);
      const size_t here = waiting[0].size();
      const bool ends_chunk = first + v + 1 == chunk.lanes.size(), is_full = here == p_.streams.vectors_of_line(n.arg);
      if (!is_full && !ends_chunk) continue;
      p_.streams.append(*task_.rows.front(), to, waiting[0], chunk.lanes[first + v + 1 - here], !is_full || at.mask != nullptr);
      waiting[0].clear();
      continue;
    }
    for (size_t r = 0; r < task_.rows.size(); ++r) {
      waiting[r].push_back(e_.widen(operands[r][v], at.width));
      if (first + v + 1 < chunk.lanes.size()) continue;
      p_.memory.store_chunk(task_.rows[r]->segment[static_cast<size_t>(n.arg)], to, waiting[r], chunk.lanes.front());
    }
  }
}

void Body::store_vectors(const AtChunk& chunk, const Store& to, size_t first, const PerRow& operands) const {
  const bool in_pairs = p_.memory.stores_pairs(to.arg);
  const size_t count = operands[0].size();
  for (size_t v = 0; v < count; ++v) {
    const Lanes& at = chunk.lanes[first + v];
    const bool two = v + 1 < count && in_pairs && at.mask == nullptr && chunk.lanes[first + v + 1].mask == nullptr;
    for (size_t r = 0; r < task_.rows.size(); ++r) {
      llvm::Value* const value = two ? e_.side_by_side(operands[r][v], operands[r][v + 1]) : operands[r][v];
      p_.memory.store_arg(task_.rows[r]->segment[static_cast<size_t>(to.arg)], to, value,
                          two ? Lanes{2 * at.width, at.offset, nullptr} : at, kernel_.arg(to.arg).strides.back());
    }
    v += two ? 1 : 0;
  }
}

}  // namespace lamina::cpu
