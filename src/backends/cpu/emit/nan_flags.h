// NaN flags: whether a maximum or a minimum has met a NaN. The machine's instruction loses NaNs, and checking the operands of
// each step takes three more instructions. So the lanes of an accumulator are only numbers, and separate flags record NaNs:
// one bit per lane of a vector, for all vectors of the accumulator. One comparison checks two vectors.
#pragma once

#include <span>

#include "backends/cpu/emit/emission.h"

namespace lamina::cpu {

class NanFlags : private Part {
 public:
  // For vectors of `type`.
  NanFlags(Emission& emission, llvm::Type* type);

  void note(std::span<llvm::Value* const> vectors);
  void reset();
  // Returns `folded`, or NaN if there was one, and resets the flags: for a vector lane by lane, for a single value if any
  // lane had one.
  llvm::Value* take_by_lane(llvm::Value* folded);
  llvm::Value* take(llvm::Value* folded);

 private:
  llvm::Value* flags() { return b_.CreateLoad(memory_->getAllocatedType(), memory_); }
  llvm::Value* seen(llvm::Value* a, llvm::Value* b);  // as flags
  llvm::Value* join(llvm::Value* a, llvm::Value* b);
  llvm::Value* take_numbers();  // i1 per lane: it has met no NaN so far

  const bool in_masks_;  // flags are bits that are set until a NaN is met; else integer lanes that are all ones after a NaN
  llvm::AllocaInst* const memory_;
};

}  // namespace lamina::cpu
