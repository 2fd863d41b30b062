#include "backends/gpu/emit/rows.h"

#include <algorithm>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/emit_kernel.h"
#include "backends/gpu/schedule/registers.h"
#include "backends/gpu/schedule/tuning.h"

namespace lamina::gpu {

using kernel::Node;
using kernel::NodeKind;

// The number of groups that should be resident on a multiprocessor, so that some load while others reduce: fewer if threads
// need more registers. Kernels in double only need one group.
int Rows::resident_groups() const {
  const bool light = static_cast<int64_t>(kernel_.nodes.size()) <= tuning::kFewNodes &&
                     std::none_of(kernel_.nodes.begin(), kernel_.nodes.end(),
                                  [](const Node& n) { return cost_of(n) == kernel::CostClass::function; });
  const bool many_addresses = schedule_.vector == 1 && e_.chunks() > tuning::kFewSteps;
  const int most = light && !many_addresses ? tuning::kThreadsOfFewRegisters : tuning::kThreadsOfManyRegisters;
  if (e_.wide) return 1;
  return std::max(1, std::min(most, threads_with(registers_of(plan_, e_.order, schedule_))) / schedule_.group_size());
}

void Rows::begin_function(const std::string& suffix) {
  std::string parameters;
  for (size_t a = 0; a < kernel_.args.size(); ++a) parameters += join("LM_BUFFER b", a, ", const lm_s64 o", a, ", ");
  if (columns_.count() > 0 || schedule_.split) parameters += "LM_BUFFER partials, const lm_s64 partials_offset, ";
  parameters += "const lm_s64 rows, const lm_s64 inner";
  for (size_t d = 0; d < e_.outer; ++d) parameters += join(", const lm_s64 e", d);
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    for (size_t d = 0; d < e_.outer; ++d) {
      if (kernel_.args[a].strides[d] != 0) parameters += join(", const lm_s64 s", a, "_", d);
    }
  }
  if (schedule_.split) parameters += ", const lm_s64 states, const lm_s64 span";
  if (schedule_.copies_ahead && columns_.count() == 0) parameters += ", const lm_s64 rows_of_team";
  e_.symbols.push_back(e_.symbol + suffix);
  const std::string cluster = schedule_.cluster ? join("LM_CLUSTER(", blocks_of_row(kernel_, e_.order), ") ") : "";
  out_.open("LM_KERNEL(", schedule_.group_size(), ", ", resident_groups(), ") ", cluster, e_.symbols.back(), "(", parameters,
            ")");
}

void Rows::begin_columns_function() {
  std::string parameters;
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    if (kernel_.args[a].column) parameters += join("LM_BUFFER b", a, ", const lm_s64 o", a, ", ");
  }
  e_.symbols.push_back(e_.symbol + "_columns");
  const int group_size = tuning::kColumnLanes * schedule_.column_threads;
  const int resident = e_.wide ? 1 : std::max(1, tuning::kThreadsOfManyRegisters / group_size);
  out_.open("LM_KERNEL(", group_size, ", ", resident, ") ", e_.symbols.back(), "(", parameters,
            "LM_BUFFER partials, const lm_s64 partials_offset, ", columns_.parameters(), ")");
}

void Rows::emit_threads() {
  const int team = schedule_.team, teams = schedule_.rows_per_group;
  out_.line("const int thread = LM_THREAD;");
  if (schedule_.rows_adjacent)
    out_.line("const int t = thread / ", teams, ", team = thread % ", teams, ";");
  else
    out_.line("const int t = thread % ", team, ", team = thread / ", team, ";");
}

void Rows::for_rows(const std::string& place, bool sums_columns, const std::function<void()>& before,
                    const std::function<void()>& body) {
  if (!sums_columns && !schedule_.copies_ahead) {
    out_.line("const lm_s64 wanted = ", place, ";");
    return body();
  }
  out_.line("const lm_s64 block = ", place, ";");
  if (sums_columns) columns_.begin();
  before();
  out_.open("for (int r = 0; r < ", count(), "; ++r)");
  out_.line("const lm_s64 wanted = ", number_of_row("r"), ";");
  body();
  out_.close();
  if (schedule_.column_registers) columns_.store();
}

std::string Rows::count() const { return columns_.count() > 0 ? join(e_.order.column_rows) : "(int)rows_of_team"; }

std::string Rows::number_of_row(const std::string& row) const {
  if (kernel_.entry_rank > 0) return join("of_block + ", row, " < of_entry ? entry + of_block + ", row, " : rows");
  return join("block * ", columns_.count() > 0 ? join(e_.order.column_rows) : "rows_of_team", " + ", row);
}

void Rows::begin_row(bool is_sure) {
  e_.known.assign(kernel_.nodes.size(), false);
  out_.line("const int live = ", is_sure ? "1" : "wanted < rows", ";");
  out_.line("const lm_s64 row = ", is_sure ? "wanted" : "live ? wanted : rows - 1", ";");
  if (e_.outer > 0) e_.emit_positions("row", 0, e_.outer, "lm_s64", "");
  emit_row_pointers();
}

void Rows::emit_row_pointers() {
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    const kernel::Arg& arg = kernel_.args[a];
    if (arg.column) continue;
    std::string place;
    for (size_t d = 0; d < e_.outer; ++d) {
      if (arg.strides[d] != 0) place += join(" + x", d, " * s", a, "_", d);
    }
    const std::string type = join("LM_GLOBAL ", arg.output ? "" : "const ", storage_type(arg.dtype), "*");
    if (e_.shares_bytes(static_cast<int>(a))) {
      out_.line("const lm_s64 f", a, " = 0", place, ";");
      place.clear();
    }
    out_.line(type, " const p", a, " = (", type, ")(b", a, " + o", a, ")", place, ";");
  }
}

}  // namespace lamina::gpu
