#include "backends/gpu/emit/row_loops.h"

namespace lamina::gpu {

using kernel::NodeIndex;

void RowLoops::emit_row() {
  p_.rows.begin_row();
  p_.chunk.declare_live_values();
  for (int phase = 0; phase < plan_.count(); ++phase) emit_phase(phase);
}

void RowLoops::emit_flat() {
  const int vector = schedule_.vector;
  out_.line("const lm_ix chunks = (lm_ix)(inner / ", vector, ");");
  out_.line("const lm_ix chunk = (lm_ix)LM_GROUP * ", schedule_.group_size(), " + LM_THREAD;");
  out_.line("if (chunk >= (lm_ix)rows * chunks) return;");
  if (e_.outer == 0) {
    out_.line("const lm_ix at = chunk * ", vector, ";");
  } else {
    out_.line("const lm_ix row = chunk / chunks;");
    out_.line("const lm_ix at = (chunk - row * chunks) * ", vector, ";");
    e_.emit_positions("row", 0, e_.outer, "lm_ix", "(lm_ix)");
  }
  p_.rows.emit_row_pointers();
  out_.line("const int k = 0;");
  for (int phase = 0; phase < plan_.count(); ++phase) {
    p_.values.emit_row_values(phase);
    if (!plan_.roots(phase).empty()) p_.chunk.emit(phase);
  }
}

void RowLoops::emit_phase(int phase) {
  out_.line("// phase ", phase);
  p_.values.emit_row_values(phase);
  const NodeList& roots = plan_.roots(phase);
  if (roots.empty()) return;
  for (const NodeIndex root : roots) p_.reductions.begin_root(root, phase);
  emit_walk(phase);
  for (const NodeIndex root : roots) p_.reductions.finish_root(root, phase);
}

void RowLoops::emit_walk(int phase) {
  if (schedule_.together) {
    out_.open("");
    out_.line("const lm_ix base = first;");
    emit_block(phase);
    p_.exchange.send(phase);
    out_.close();
    return p_.exchange.receive(phase);
  }
  if (!e_.one_block) out_.open("for (lm_ix base = 0; base < ", e_.row_size, "; base += ", e_.order.block(), ")");
  emit_block(phase);
  for (const NodeIndex root : plan_.roots(phase)) p_.reductions.join_block(root, phase);
  if (!e_.one_block) out_.close();
}

void RowLoops::emit_block(int phase) {
  for (const NodeIndex root : plan_.roots(phase)) p_.reductions.begin_block(root, phase);
  if (e_.row_size > 0) {
    const bool exact = e_.one_block && e_.order.block() == e_.row_size;
    out_.open(e_.for_chunks());
    out_.line("const lm_ix at = ", e_.one_block ? "" : "base + ", "(lm_ix)(k * ", schedule_.team, " + t) * ", schedule_.vector,
              ";");
    out_.open(exact ? "if (live)" : join("if (live && at < ", e_.row_size, ")"));
    p_.chunk.emit(phase);
    out_.close();
    out_.close();
  }
  for (const NodeIndex root : plan_.roots(phase)) p_.reductions.fold_block(root, phase);
}

}  // namespace lamina::gpu
