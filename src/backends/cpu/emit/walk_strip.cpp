// A strip of columns of one row. If walks follow the lines of an output, which start at different elements in each row, so
// does a strip, and each row's strip is one line further to the left than that of the row before it. This keeps the order of
// rows in each column.
#include "backends/cpu/emit/walk.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

namespace {

class StripWalk final : public Walk {
 public:
  StripWalk(Emission& emission, const Run& run, llvm::Value* strip, bool follows_lines)
      : Walk(emission), run_(run), strip_(strip), follows_lines_(follows_lines) {}
  void over(const std::vector<Row*>& rows, const Body& body) const override;

 private:
  const Run& run_;
  llvm::Value* const strip_;
  const bool follows_lines_;
};

void StripWalk::over(const std::vector<Row*>& rows, const Body& body) const {
  const Row& row = *rows.front();
  llvm::Value *const first = first_column(e_), *const past = past_columns(e_);
  llvm::Value* const next = b_.CreateAdd(strip_, i64(schedule_.strip));
  if (!follows_lines_) return run_.range(row, strip_, e_.smaller(next, past), body);
  const int64_t line = tuning::kLine / bytes_of(kernel_.arg(schedule_.streamed.front()).dtype, 1);
  llvm::Value* const shift = b_.CreateSub(elements_to_line(e_, row, i64(0)), b_.CreateMul(row.place, i64(line)));
  llvm::Value* const begin =
      b_.CreateSelect(b_.CreateICmpEQ(strip_, first), first, e_.smaller(b_.CreateAdd(strip_, shift), past));
  llvm::Value* const end = b_.CreateSelect(b_.CreateICmpSGE(next, past), past, e_.smaller(b_.CreateAdd(next, shift), past));
  run_.range(row, begin, end, body);
}

}  // namespace

llvm::Value* first_column(Emission& e) { return e.schedule.split ? e.inner_begin : e.i64(0); }
llvm::Value* past_columns(Emission& e) { return e.schedule.split ? e.inner_end : e.i64(e.kernel.row_size()); }

std::unique_ptr<Walk> walk_strip(Emission& emission, const Run& run, llvm::Value* strip, bool follows_lines) {
  return std::make_unique<StripWalk>(emission, run, strip, follows_lines);
}

}  // namespace lamina::cpu
