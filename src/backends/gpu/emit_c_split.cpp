// The split schedule: several teams share a row, each with some of its blocks, and every phase with a walk is a separate
// kernel. The results of the blocks are in the row's state, eight bytes per value, one per block for each value of a
// reduction. A kernel first joins the results of earlier phases in the order of the blocks, so that every team has the row's
// values.
#include <algorithm>

#include "backends/gpu/source_emitter.h"

namespace lamina::gpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

namespace {

int64_t block_count(const kernel::Kernel& kernel, const Schedule& schedule) {
  return (kernel.row_size() + schedule.block() - 1) / schedule.block();
}

// The number of results per block of the row in the nodes before `end`.
int64_t result_count(const kernel::Kernel& kernel, size_t end) {
  int64_t count = 0;
  for (size_t i = 0; i < end; ++i) {
    const Node& n = kernel.nodes[i];
    if (n.kind == NodeKind::reduce || n.kind == NodeKind::moments)
      count += static_cast<int64_t>(block_results(static_cast<NodeIndex>(i), n, 0).size());
  }
  return count;
}

}  // namespace

int64_t split_state_bytes(const kernel::Kernel& kernel, const Schedule& schedule) {
  return 8 * result_count(kernel, kernel.nodes.size()) * block_count(kernel, schedule);
}

// One kernel for each phase with a walk, and one for the last phase, which stores row values.
void SourceEmitter::emit_split() {
  for (int phase = 0; phase < plan_.count(); ++phase) {
    if (phase < plan_.last() && plan_.roots(phase).empty()) continue;
    emit_split_kernel(phase);
  }
  if (columns_ > 0) emit_columns_kernel();
}

void SourceEmitter::emit_split_kernel(int phase) {
  symbols_.push_back(join(symbol_, "_", phase));
  stores_rows_ = phase == plan_.last();
  emit_signature(symbols_.back(), schedule_.group_size(), false);
  emit_threads();
  out_.line("const lm_s64 spans = (", row_size_, " + span - 1) / span;");
  out_.line("const lm_ix begin = (lm_ix)(LM_GROUP % spans * span);");
  out_.line("const lm_ix end = (lm_ix)(begin + span < ", row_size_, " ? begin + span : ", row_size_, ");");
  const std::string place = join("LM_GROUP / spans * ", schedule_.rows_per_group, " + team");
  if (columns_ > 0 && stores_rows_) {
    out_.line("const lm_s64 block = ", place, ";");
    emit_columns_begin();
    out_.open("for (int r = 0; r < ", schedule_.column_rows, "; ++r)");
    out_.line("const lm_s64 wanted = block * ", schedule_.column_rows, " + r;");
    emit_split_row(phase);
    out_.close();
  } else {
    out_.line("const lm_s64 wanted = ", place, ";");
    emit_split_row(phase);
  }
  out_.close();
}

void SourceEmitter::emit_split_row(int phase) {
  begin_row();
  out_.line("LM_GLOBAL char* const state = partials + partials_offset + states + row * ", split_state_bytes(kernel_, schedule_),
            ";");
  for (int before = 0; before < phase; ++before) join_blocks(before);
  out_.line("// phase ", phase);
  emit_row_values(phase);
  const NodeList roots = plan_.roots(phase);
  if (roots.empty()) return;
  for (const NodeIndex root : roots) {
    if (node(root).kind == NodeKind::moments) emit_shift(root);
  }
  out_.open("for (lm_ix base = begin; base < end; base += ", schedule_.block(), ")");
  emit_block(phase);
  emit_result_accesses(phase, false);
  out_.close();
}

// Computes the results of an earlier phase from the results of its blocks.
void SourceEmitter::join_blocks(int phase) {
  out_.line("// phase ", phase, ", done");
  emit_row_values(phase);
  NodeList roots = plan_.roots(phase);
  std::erase_if(roots, [&](NodeIndex root) { return !is_reduction(root); });
  if (roots.empty()) return;
  for (const NodeIndex root : roots) begin_totals(root, phase);
  out_.open("for (lm_ix base = 0; base < ", row_size_, "; base += ", schedule_.block(), ")");
  emit_result_accesses(phase, true);
  for (const NodeIndex root : roots) join_block(root, phase);
  out_.close();
  for (const NodeIndex root : roots) finish_root(root, phase);
}

void SourceEmitter::emit_result_accesses(int phase, bool loads) {
  const int64_t blocks = block_count(kernel_, schedule_);
  for (const NodeIndex root : plan_.roots(phase)) {
    if (!is_reduction(root)) continue;
    const char* type = c_type(node(root).type);
    int64_t slot = result_count(kernel_, static_cast<size_t>(root));
    if (loads && by_block(root)) out_.line("lm_pair_", suffix_of(node(root).type), " part", root, ";");
    for (const std::string& result : block_results(root, node(root), phase)) {
      const std::string place =
          join("*(LM_GLOBAL ", type, "*)(state + ((lm_s64)(base / ", schedule_.block(), ") + ", slot++ * blocks, ") * 8)");
      const bool declared = result.find('.') != std::string::npos;
      if (loads)
        out_.line(declared ? "" : join("const ", type, " "), result, " = ", place, ";");
      else
        out_.line("if (t == 0 && live) ", place, " = ", result, ";");
    }
  }
}

}  // namespace lamina::gpu
