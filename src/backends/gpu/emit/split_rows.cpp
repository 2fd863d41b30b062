#include "backends/gpu/emit/split_rows.h"

#include <algorithm>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/emit_kernel.h"

namespace lamina::gpu {

using kernel::NodeIndex;
using kernel::NodeKind;

namespace {

class SplitRows : private Part {
 public:
  explicit SplitRows(Parts& parts) : Part(parts.e), p_(parts), loops_(parts) {}
  void emit_function(int phase);

 private:
  void emit_row(int phase);
  void join_blocks(int phase);
  // Of result `number` of the block at `base`, in the row's state.
  std::string place_of_result(kernel::Type type, int64_t number) const;

  Parts& p_;
  RowLoops loops_;
};

void SplitRows::emit_function(int phase) {
  e_.stores_rows = phase == plan_.last();
  p_.rows.begin_function(join("_", phase));
  p_.reductions.emit_team_memory();
  p_.rows.emit_threads();
  out_.line("const lm_s64 spans = (", e_.row_size, " + span - 1) / span;");
  out_.line("const lm_ix begin = (lm_ix)(LM_GROUP % spans * span);");
  out_.line("const lm_ix end = (lm_ix)(begin + span < ", e_.row_size, " ? begin + span : ", e_.row_size, ");");
  p_.rows.for_rows(
      join("LM_GROUP / spans * ", schedule_.rows_per_group, " + team"), p_.columns.count() > 0 && e_.stores_rows, [] {},
      [&] { emit_row(phase); });
  out_.close();
}

void SplitRows::emit_row(int phase) {
  p_.rows.begin_row();
  out_.line("LM_GLOBAL char* const state = partials + partials_offset + states + row * ", split_state_bytes(kernel_), ";");
  for (int before = 0; before < phase; ++before) join_blocks(before);
  out_.line("// phase ", phase);
  p_.values.emit_row_values(phase);
  if (plan_.roots(phase).empty()) return;
  for (const NodeIndex root : plan_.roots(phase)) {
    if (node(root).kind == NodeKind::moments) p_.reductions.emit_shift(root);
  }
  out_.open("for (lm_ix base = begin; base < end; base += ", e_.order.block(), ")");
  loops_.emit_block(phase);
  p_.reductions.for_results(phase, [&](kernel::Type type, int64_t number, const std::string& result) {
    out_.line("if (t == 0 && live) ", place_of_result(type, number), " = ", result, ";");
  });
  out_.close();
}

// Computes the results of an earlier phase from the results of its blocks.
void SplitRows::join_blocks(int phase) {
  out_.line("// phase ", phase, ", done");
  p_.values.emit_row_values(phase);
  NodeList roots = plan_.roots(phase);
  std::erase_if(roots, [&](NodeIndex root) { return !is_reduction(root); });
  if (roots.empty()) return;
  for (const NodeIndex root : roots) p_.reductions.begin_totals(root, phase);
  p_.reductions.join_results(phase, [&](kernel::Type type, int64_t number) { return place_of_result(type, number); });
  for (const NodeIndex root : roots) p_.reductions.finish_root(root, phase);
}

std::string SplitRows::place_of_result(kernel::Type type, int64_t number) const {
  return join("*(LM_GLOBAL ", c_type(type), "*)(state + ((lm_s64)(base / ", e_.order.block(), ") + ",
              number * blocks_of_row(kernel_, e_.order), ") * 8)");
}

}  // namespace

int64_t split_state_bytes(const kernel::Kernel& kernel) {
  return 8 * count_block_results(kernel) * blocks_of_row(kernel, sum_order(kernel));
}

// One function for each phase with a walk, and one for the last phase, which stores row values.
void emit_split_rows(Parts& parts) {
  SplitRows split(parts);
  for (int phase = 0; phase < parts.e.plan.count(); ++phase)
    if (phase == parts.e.plan.last() || !parts.e.plan.roots(phase).empty()) split.emit_function(phase);
}

}  // namespace lamina::gpu
