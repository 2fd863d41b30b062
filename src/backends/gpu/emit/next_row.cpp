#include "backends/gpu/emit/next_row.h"

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/schedule/tuning.h"

namespace lamina::gpu {

using kernel::NodeIndex;

void NextRow::begin() {
  out_.line("LM_COPIED_ROWS(", local_bytes_of_copies(kernel_, e_.order, schedule_), ");");
  for (size_t i = 0; i < kernel_.nodes.size(); ++i)
    if (e_.is_taken_ahead[i]) out_.line(c_type(kernel_.nodes[i].type), " ahead", i, ";");
  fetch("0", rows_.number_of_row("0"));
}

void NextRow::advance() {
  for (size_t i = 0; i < kernel_.nodes.size(); ++i)
    if (e_.is_taken_ahead[i]) out_.line("const ", c_type(kernel_.nodes[i].type), " taken", i, " = ahead", i, ";");
  out_.line("const int side = r % ", tuning::kRowsInLocalMemory, ";");
  fetch(join("(r + 1) % ", tuning::kRowsInLocalMemory),
        join("r + 1 < ", rows_.count(), " ? ", rows_.number_of_row("(r + 1)"), " : rows"));
  out_.line("LM_WAIT_FOR_COPIES(1);");
}

// Copies the row to one of the two sides of the memory, and reads the values of it that all threads need.
void NextRow::fetch(const std::string& side, const std::string& wanted) {
  out_.open("");
  out_.line("const lm_s64 wanted = ", wanted, ";");
  rows_.begin_row(false);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i)
    if (e_.is_taken_ahead[i]) out_.line("ahead", i, " = ", values_.first_value(static_cast<NodeIndex>(i)), ";");
  out_.line("const int side = ", side, ";");
  copy_chunks();
  out_.close();
  out_.line("lm_end_copies();");
}

void NextRow::copy_chunks() {
  out_.open(e_.for_chunks());
  out_.line("const lm_ix at = ", e_.one_block ? "" : "first + ", "(lm_ix)(k * ", schedule_.team, " + t) * ", schedule_.vector,
            ";");
  out_.open("if (live && at < ", e_.row_size, ")");
  if (kernel_.extents.size() > e_.outer + 1) e_.emit_positions("at", e_.outer, kernel_.extents.size(), "lm_ix", "");
  for (const int a : e_.copied_ahead)
    out_.line("LM_COPY_AHEAD(", schedule_.vector, ", ", values_.copied_chunk(a), ", p", a, " + ", values_.offset(a), ");");
  out_.close();
  out_.close();
}

}  // namespace lamina::gpu
