// Chunks of the 64 virtual lanes, or of fewer if nothing is summed, in vectors, with masked vectors for the rest.
#include "backends/cpu/emit/walk.h"

namespace lamina::cpu {

namespace {

class ChunkRun final : public Run {
 public:
  ChunkRun(Emission& emission, int step) : Run(emission, step) {}
  void count(const Row& row, llvm::Value* begin, int64_t count, const Body& body) const override;
  void range(const Row& row, llvm::Value* begin, llvm::Value* end, const Body& body) const override;
};

void ChunkRun::count(const Row&, llvm::Value* begin, int64_t count, const Body& body) const {
  const int64_t whole = count / step_ * step_;
  if (whole > 0) {
    e_.loop(begin, b_.CreateAdd(begin, i64(whole)), i64(step_), [&](llvm::Value* at) { body(chunk_at(e_, at, step_)); });
  }
  if (count > whole) body(chunk_at(e_, b_.CreateAdd(begin, i64(whole)), static_cast<int>(count - whole)));
}

void ChunkRun::range(const Row&, llvm::Value* begin, llvm::Value* end, const Body& body) const {
  llvm::Value* const chunks = b_.CreateSDiv(b_.CreateSub(end, begin), i64(step_));
  llvm::Value* const rest = b_.CreateAdd(begin, b_.CreateMul(chunks, i64(step_)));
  e_.loop(begin, rest, i64(step_), [&](llvm::Value* at) { body(chunk_at(e_, at, step_)); });
  run_masked_vectors(e_, rest, end, body);
}

}  // namespace

void run_masked_vectors(Emission& e, llvm::Value* begin, llvm::Value* end, const Body& body) {
  e.loop(begin, end, e.i64(e.width), [&](llvm::Value* at) {
    llvm::Value* mask = nullptr;
    if (e.width > 1) {
      auto* const vector = llvm::FixedVectorType::get(e.b.getInt32Ty(), static_cast<unsigned>(e.width));
      llvm::Value* const left = e.smaller(e.b.CreateSub(end, at), e.i64(e.width));
      mask = e.b.CreateICmpSLT(e.b.CreateStepVector(vector), e.widen(e.b.CreateTrunc(left, e.b.getInt32Ty()), e.width));
    }
    body({Lanes{e.width, at, mask}});
  });
}

std::unique_ptr<Run> run_by_chunks(Emission& emission, int step) { return std::make_unique<ChunkRun>(emission, step); }

}  // namespace lamina::cpu
