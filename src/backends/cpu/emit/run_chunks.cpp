// Chunks of the 64 virtual lanes, or of fewer if nothing is summed, in vectors, with masked vectors for the rest.
#include "backends/cpu/emit/walk.h"

namespace lamina::cpu {

void run_chunks(Emission& e, int step, llvm::Value* begin, int64_t count, const Body& body) {
  const int64_t whole = count / step * step;
  const auto rest = static_cast<int>(count - whole);
  for (size_t pass = 0; pass < body.passes(); ++pass) {
    if (whole > 0) {
      e.loop(begin, e.b.CreateAdd(begin, e.i64(whole)), e.i64(step),
             [&](llvm::Value* at) { body.in_pass(chunk_at(e, at, step), pass); });
    }
    if (rest > 0) body.in_pass(chunk_at(e, e.b.CreateAdd(begin, e.i64(whole)), rest), pass);
  }
}

void run_chunks(Emission& e, int step, llvm::Value* begin, llvm::Value* end, const Body& body) {
  llvm::Value* const chunks = e.b.CreateSDiv(e.b.CreateSub(end, begin), e.i64(step));
  llvm::Value* const rest = e.b.CreateAdd(begin, e.b.CreateMul(chunks, e.i64(step)));
  for (size_t pass = 0; pass < body.passes(); ++pass)
    e.loop(begin, rest, e.i64(step), [&](llvm::Value* at) { body.in_pass(chunk_at(e, at, step), pass); });
  run_masked_vectors(e, rest, end, body);
}

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

}  // namespace lamina::cpu
