// A run whose chunks start at lines of the streamed outputs: vectors with a computed mask up to the first line, chunks,
// lines, and masked vectors again. Reductions cannot use it, because it changes the order of their lanes.
#include <algorithm>

#include "backends/cpu/emit/walk.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using tuning::kLine;

namespace {

class LineRun final : public Run {
 public:
  LineRun(Emission& emission, int step) : Run(emission, step) {}
  void count(const Row& row, llvm::Value* begin, int64_t count, const Body& body) const override {
    range(row, begin, b_.CreateAdd(begin, i64(count)), body);
  }
  void range(const Row& row, llvm::Value* begin, llvm::Value* end, const Body& body) const override;
};

void LineRun::range(const Row& row, llvm::Value* begin, llvm::Value* end, const Body& body) const {
  const int64_t bytes = bytes_of(kernel_.arg(schedule_.streamed.front()).dtype, 1);
  llvm::Value* const line = e_.smaller(b_.CreateAdd(begin, elements_to_line(e_, row, begin)), end);
  const int per_line = std::clamp(static_cast<int>(kLine / bytes), e_.width, step_);
  const auto after_whole = [&](int64_t size) { return b_.CreateAdd(line, b_.CreateAnd(b_.CreateSub(end, line), i64(-size))); };
  llvm::Value *const chunks_end = after_whole(step_), *const lines_end = after_whole(per_line);
  // Both ends use the same code for masked vectors.
  e_.loop(i64(0), i64(2), i64(1), [&](llvm::Value* part) {
    llvm::Value* const is_head = b_.CreateICmpEQ(part, i64(0));
    run_masked_vectors(e_, b_.CreateSelect(is_head, begin, lines_end), b_.CreateSelect(is_head, line, end), body);
    e_.loop(b_.CreateSelect(is_head, line, chunks_end), chunks_end, i64(step_),
            [&](llvm::Value* at) { body(chunk_at(e_, at, step_)); });
    if (per_line == step_) return;
    e_.loop(b_.CreateSelect(is_head, chunks_end, lines_end), lines_end, i64(per_line),
            [&](llvm::Value* at) { body(chunk_at(e_, at, per_line)); });
  });
}

}  // namespace

llvm::Value* elements_to_line(Emission& e, const Row& row, llvm::Value* begin) {
  const auto leader = static_cast<size_t>(e.schedule.streamed.front());
  const int64_t bytes = bytes_of(e.kernel.args[leader].dtype, 1);
  llvm::Value* const address =
      e.b.CreateAdd(e.b.CreatePtrToInt(row.segment[leader], e.b.getInt64Ty()), e.b.CreateMul(begin, e.i64(bytes)));
  return e.b.CreateUDiv(e.b.CreateAnd(e.b.CreateNeg(address), e.i64(kLine - 1)), e.i64(bytes));
}

std::unique_ptr<Run> run_along_lines(Emission& emission, int step) { return std::make_unique<LineRun>(emission, step); }

}  // namespace lamina::cpu
