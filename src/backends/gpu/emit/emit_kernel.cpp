#include "backends/gpu/emit/emit_kernel.h"

#include <algorithm>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/math_text.h"
#include "backends/gpu/emit/program_text.h"
#include "backends/gpu/emit/row_loops.h"
#include "backends/gpu/emit/split_rows.h"
#include "backends/gpu/schedule/tuning.h"

namespace lamina::gpu {

using kernel::Node;
using kernel::NodeKind;

namespace {

// A function for each sum of entries, since a loop is no expression.
std::string entry_sums(const kernel::Kernel& kernel) {
  std::string text;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const Node& n = kernel.nodes[i];
    if (n.kind != NodeKind::sum_entries) continue;
    const kernel::Arg& arg = kernel.arg(n.arg);
    const std::string element = from_storage(arg.dtype, join("from[order[i] * ", arg.entry_stride, "]"));
    text += join("LM_FN lm_f64 sum", i, "(LM_GLOBAL const ", storage_type(arg.dtype),
                 "* from, LM_GLOBAL const lm_s64* order, lm_s64 i, lm_s64 end) {\n  lm_f64 sum = 0;\n",
                 "  for (; i < end; ++i) sum += (lm_f64)", element, ";\n  return sum;\n}\n\n");
  }
  return text;
}

// The number of the row of a team, or of its block of rows.
std::string place_of_team(const Emission& e) {
  if (e.schedule.cluster) return join("LM_GROUP / ", blocks_of_row(e.kernel, e.order));
  if (e.schedule.together) return "LM_GROUP";
  return join("(lm_s64)LM_GROUP * ", e.schedule.rows_per_group, " + team");
}

void emit_rows(Parts& parts) {
  Emission& e = parts.e;
  RowLoops loops(parts);
  parts.rows.begin_function("");
  if (e.schedule.flat) {
    loops.emit_flat();
  } else {
    parts.reductions.emit_team_memory();
    parts.rows.emit_threads();
    if (e.schedule.together) parts.exchange.begin();
    const auto before = [&] {
      if (e.schedule.copies_ahead) parts.next_row.begin();
    };
    parts.rows.for_rows(place_of_team(e), parts.columns.count() > 0, before, [&] {
      if (e.schedule.copies_ahead) parts.next_row.advance();
      loops.emit_row();
    });
  }
  e.out.close();
}

}  // namespace

bool needs_f64(const kernel::Kernel& kernel) {
  for (const kernel::Arg& arg : kernel.args) {
    if (arg.dtype == DataType::f64) return true;
  }
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [](const Node& n) {
    return n.type == kernel::Type::f64 || (is_elementary(n) && function_text(n).needs_f64);
  });
}

KernelSource emit_kernel(const kernel::Kernel& kernel, const Schedule& schedule, const Language& language, bool aligned,
                         bool disjoint) {
  Emission emission(kernel, schedule, "lamina_" + kernel.name);
  Parts parts(emission);
  if (schedule.split)
    emit_split_rows(parts);
  else
    emit_rows(parts);
  if (parts.columns.count() > 0) {
    parts.rows.begin_columns_function();
    parts.columns.emit_kernel();
    emission.out.close();
  }
  KernelSource source{.symbol = emission.symbol, .symbols = emission.symbols, .text = "", .body = "", .local_bytes = {}};
  source.body =
      join("typedef ", schedule.wide_offsets ? "lm_s64" : "int", " lm_ix;\n\n", entry_sums(kernel), emission.out.str());
  source.text = program_prelude(kernel, schedule, language, emission.wide, aligned, disjoint) + source.body;
  if (schedule.copies_ahead) source.local_bytes = {local_bytes_of_copies(kernel, emission.order, schedule)};
  return source;
}

}  // namespace lamina::gpu
