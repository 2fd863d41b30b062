// NaN flags: whether a maximum or a minimum has met a NaN. The machine's own instruction loses NaNs, and comparing each step's
// operands again takes three more. So the lanes of an accumulator are numbers alone, and beside them lies what is known of
// NaNs: a bit of each lane of a vector, for all vectors of the accumulator. A comparison looks at two vectors at once.
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
  // `folded`, or NaN where there was one: a vector lane by lane, one value for any lane. The flags start anew.
  llvm::Value* take_by_lane(llvm::Value* folded);
  llvm::Value* take(llvm::Value* folded);

 private:
  llvm::Value* flags() { return b_.CreateLoad(memory_->getAllocatedType(), memory_); }
  llvm::Value* seen(llvm::Value* a, llvm::Value* b);  // as flags
  llvm::Value* join(llvm::Value* a, llvm::Value* b);
  llvm::Value* take_numbers();  // i1 of each lane: it was no NaN so far

  const bool in_masks_;  // flags are bits, set while there was no NaN; else lanes of integers, all ones where there was one
  llvm::AllocaInst* const memory_;
};

}  // namespace lamina::cpu
