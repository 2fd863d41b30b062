#include "backends/cpu/emit/phases.h"

#include <algorithm>

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

namespace {

bool is_real(const Node& n) { return n.type == kernel::Type::f32 || n.type == kernel::Type::f64; }

// Random words are as expensive as a transcendental function, but they are integers.
bool is_expensive_map(const Node& n) {
  return computes_function(n) || (n.kind == NodeKind::map && n.op == kernel::MapOp::philox_word);
}

}  // namespace

Phases::Phases(const Emission& emission)
    : e_(emission), kernel_(emission.kernel), schedule_(emission.schedule), live_since_(emission.kernel.nodes.size(), -1) {
  choose_stores();
  choose_live_nodes();
}

// A reduction runs in the loop that computes its operand, a column sum in the last loop.
int Phases::loop_of(NodeIndex index) const {
  const Node& root = node(index);
  if (root.kind == NodeKind::column_sum) return last();
  if (root.kind == NodeKind::store) return store_loop_[static_cast<size_t>(index)];
  return node(root.operands[0]).phase;
}

// A store runs as soon as its value is known. If the last loop has the value too, the store runs there in two cases: it is
// streamed (that loop follows the output's lines), or its value needs a function that no sum needs earlier.
void Phases::choose_stores() {
  store_loop_.assign(kernel_.nodes.size(), -1);
  NodeList sums;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (kernel_.nodes[i].kind == NodeKind::store) store_loop_[i] = kernel_.nodes[i].phase;
    if (kernel_.nodes[i].kind == NodeKind::reduce || kernel_.nodes[i].kind == NodeKind::moments)
      sums.push_back(static_cast<NodeIndex>(i));
  }
  const NodeList at_last = nodes_for(roots_of(last()), last()), summed = nodes_for(sums, last());
  const auto is_in = [](const NodeList& list, NodeIndex i) { return std::find(list.begin(), list.end(), i) != list.end(); };
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (store_loop_[i] < 0 || !is_in(at_last, kernel_.nodes[i].operands[0])) continue;
    const NodeList made_of = nodes_for({static_cast<NodeIndex>(i)}, last());
    const bool is_known_before =
        std::any_of(made_of.begin(), made_of.end(), [&](NodeIndex n) { return is_expensive_map(node(n)) && is_in(summed, n); });
    const bool is_expensive =
        std::any_of(made_of.begin(), made_of.end(), [&](NodeIndex n) { return is_expensive_map(node(n)); });
    if (!is_known_before && (is_expensive || !schedule_.streamed.empty())) store_loop_[i] = last();
  }
}

NodeList Phases::roots_of(int phase) const {
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

NodeList Phases::nodes_for(const NodeList& roots, int phase) const {
  std::vector<bool> needed(kernel_.nodes.size(), false);
  for (const NodeIndex root : roots) needed[static_cast<size_t>(node(root).operands[0])] = true;
  NodeList list;
  for (size_t i = kernel_.nodes.size(); i-- > 0;) {
    const Node& n = kernel_.nodes[i];
    if (!needed[i] || !n.per_element) continue;
    list.push_back(static_cast<NodeIndex>(i));
    if (is_read_back(static_cast<NodeIndex>(i), phase)) continue;  // read back, so its operands are not needed
    for (int k = 0; k < kernel::operand_count(n); ++k) needed[static_cast<size_t>(n.operands[static_cast<size_t>(k)])] = true;
  }
  std::reverse(list.begin(), list.end());
  return list;
}

// Values that are expensive to compute (a conversion, a strided access, a transcendental function) and needed in several
// walks over the row stay live as f32 (f64) in a buffer that stays in the first-level cache. The buffers are on the stack, so
// their size is limited.
void Phases::choose_live_nodes() {
  live_since_.assign(kernel_.nodes.size(), -1);
  if (e_.inner_rank() > 1 || schedule_.split) return;
  std::vector<int> first(kernel_.nodes.size(), -1), loops(kernel_.nodes.size(), 0);
  for (int phase = 0; phase < count(); ++phase) {
    for (const NodeIndex i : nodes_for(roots_of(phase), phase)) {
      const auto at = static_cast<size_t>(i);
      if (loops[at]++ == 0) first[at] = phase;
    }
  }
  int64_t budget = e_.across_rows() ? tuning::kLiveBytesTransposed : tuning::kLiveBytes / schedule_.rows_per_tile;
  const int64_t bytes = live_row_size() * e_.group * (e_.wide ? 8 : 4);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    if (loops[i] < 2 || !is_real(n)) continue;
    const NodeIndex replaced = live_operand_of_alone(static_cast<NodeIndex>(i));
    if (replaced < 0 && (bytes > budget || !is_expensive(n))) continue;
    live_since_[i] = first[i];
    if (replaced < 0)
      budget -= bytes;
    else
      live_since_[static_cast<size_t>(replaced)] = -1;
  }
}

// The first float values computed from random words, which are integers: only f32 or f64 values stay live.
bool Phases::is_made_of_words(const Node& n) const {
  for (int k = 0; k < kernel::operand_count(n); ++k) {
    const Node& operand = node(n.operands[static_cast<size_t>(k)]);
    if (!operand.per_element || operand.kind != NodeKind::map || is_real(operand)) continue;
    if (is_expensive_map(operand) || is_made_of_words(operand)) return true;
  }
  return false;
}

bool Phases::is_expensive(const Node& n) const {
  if (n.kind == NodeKind::map) return is_expensive_map(n) || (is_real(n) && is_made_of_words(n));
  if (n.kind != NodeKind::load) return false;
  const kernel::Arg& arg = kernel_.args[static_cast<size_t>(n.arg)];
  const LaneStep step = e_.lane_step(n.arg, arg.strides.back());
  const bool converts = bits_of(arg.dtype) < 32 && (schedule_.keeps_conversions || e_.across_rows());
  return varies_by_row(kernel_, arg) && (converts || (e_.across_rows() ? step == LaneStep::other : step != LaneStep::one));
}

// The live node that is the only element operand of `index` and has no other reader: keeping `index` live instead costs the
// same and saves a step. -1 if there is none.
NodeIndex Phases::live_operand_of_alone(NodeIndex index) const {
  const Node& n = node(index);
  if (n.kind != NodeKind::map) return -1;
  NodeIndex only = -1;
  for (int k = 0; k < kernel::operand_count(n); ++k) {
    const NodeIndex operand = n.operands[static_cast<size_t>(k)];
    if (!node(operand).per_element) continue;
    if (only >= 0 || live_since_[static_cast<size_t>(operand)] < 0) return -1;
    only = operand;
  }
  const auto reads = [&](const Node& other) {
    return std::find(other.operands.begin(), other.operands.end(), only) != other.operands.end();
  };
  return only >= 0 && std::count_if(kernel_.nodes.begin(), kernel_.nodes.end(), reads) == 1 ? only : -1;
}

bool Phases::may_be_skipped(int phase) const {
  const NodeList roots = roots_of(phase);
  return !roots.empty() && std::all_of(roots.begin(), roots.end(),
                                       [&](NodeIndex i) { return node(i).kind == NodeKind::moments && loop_of(i) < phase; });
}

std::vector<int> Phases::usual_walks() const {
  std::vector<int> walks;
  for (int p = 0; p < count(); ++p) {
    if (!roots_of(p).empty() && !may_be_skipped(p)) walks.push_back(p);
  }
  return walks;
}

bool Phases::reduces(const NodeList& roots) const {
  return std::any_of(roots.begin(), roots.end(),
                     [&](NodeIndex i) { return node(i).kind == NodeKind::reduce || node(i).kind == NodeKind::moments; });
}

int64_t Phases::live_row_size() const { return (kernel_.row_size() + kVirtualLanes - 1) / kVirtualLanes * kVirtualLanes; }

bool Phases::has_function(const NodeList& nodes) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeIndex i) { return computes_function(node(i)); });
}

bool Phases::may_spill(const NodeList& nodes) const {
  return static_cast<int64_t>(nodes.size()) > tuning::kMaxNodesSideBySide || has_function(nodes);
}

}  // namespace lamina::cpu
