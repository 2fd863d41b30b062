// A strip of columns of one row. If walks follow the lines of an output, which start at different elements in each row, so
// does a strip, and each row's strip is one line further to the left than that of the row before it. This keeps the order of
// rows in each column.
#include "backends/cpu/emit/walk.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

void walk_strip(Emission& e, const Run& run, const Row& row, llvm::Value* strip, bool follows_lines, const Body& body) {
  llvm::Value *const first = first_column(e), *const past = past_columns(e);
  llvm::Value* const next = e.b.CreateAdd(strip, e.i64(e.schedule.strip));
  if (!follows_lines) return run.range(e, row, strip, e.smaller(next, past), body);
  const int64_t line = tuning::kLine / bytes_of(e.kernel.arg(e.schedule.streamed.front()).dtype, 1);
  llvm::Value* const shift = e.b.CreateSub(elements_to_line(e, row, e.i64(0)), e.b.CreateMul(row.place, e.i64(line)));
  llvm::Value* const begin =
      e.b.CreateSelect(e.b.CreateICmpEQ(strip, first), first, e.smaller(e.b.CreateAdd(strip, shift), past));
  llvm::Value* const end = e.b.CreateSelect(e.b.CreateICmpSGE(next, past), past, e.smaller(e.b.CreateAdd(next, shift), past));
  run.range(e, row, begin, end, body);
}

llvm::Value* first_column(Emission& e) { return e.schedule.split ? e.inner_begin : e.i64(0); }
llvm::Value* past_columns(Emission& e) { return e.schedule.split ? e.inner_end : e.i64(e.kernel.row_size()); }

}  // namespace lamina::cpu
