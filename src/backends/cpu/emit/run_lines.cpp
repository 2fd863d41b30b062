// A run whose chunks start at lines of the streamed outputs: vectors with a computed mask up to the first line, chunks,
// lines, and masked vectors again. Reductions cannot use it, because it changes the order of their lanes.
#include <algorithm>

#include "backends/cpu/emit/walk.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using tuning::kLine;

void run_lines(Emission& e, int step, const Row& row, llvm::Value* begin, llvm::Value* end, const Body& body) {
  const int64_t bytes = bytes_of(e.kernel.arg(e.schedule.streamed.front()).dtype, 1);
  llvm::Value* const line = e.smaller(e.b.CreateAdd(begin, elements_to_line(e, row, begin)), end);
  const int per_line = std::clamp(static_cast<int>(kLine / bytes), e.width, step);
  const auto after_whole = [&](int64_t size) {
    return e.b.CreateAdd(line, e.b.CreateAnd(e.b.CreateSub(end, line), e.i64(-size)));
  };
  llvm::Value *const chunks_end = after_whole(step), *const lines_end = after_whole(per_line);
  // Both ends use the same code for masked vectors.
  e.loop(e.i64(0), e.i64(2), e.i64(1), [&](llvm::Value* part) {
    llvm::Value* const is_head = e.b.CreateICmpEQ(part, e.i64(0));
    run_masked_vectors(e, e.b.CreateSelect(is_head, begin, lines_end), e.b.CreateSelect(is_head, line, end), body);
    e.loop(e.b.CreateSelect(is_head, line, chunks_end), chunks_end, e.i64(step),
           [&](llvm::Value* at) { body(chunk_at(e, at, step)); });
    if (per_line == step) return;
    e.loop(e.b.CreateSelect(is_head, chunks_end, lines_end), lines_end, e.i64(per_line),
           [&](llvm::Value* at) { body(chunk_at(e, at, per_line)); });
  });
}

llvm::Value* elements_to_line(Emission& e, const Row& row, llvm::Value* begin) {
  const auto leader = static_cast<size_t>(e.schedule.streamed.front());
  const int64_t bytes = bytes_of(e.kernel.args[leader].dtype, 1);
  llvm::Value* const address =
      e.b.CreateAdd(e.b.CreatePtrToInt(row.segment[leader], e.b.getInt64Ty()), e.b.CreateMul(begin, e.i64(bytes)));
  return e.b.CreateUDiv(e.b.CreateAnd(e.b.CreateNeg(address), e.i64(kLine - 1)), e.i64(bytes));
}

}  // namespace lamina::cpu
