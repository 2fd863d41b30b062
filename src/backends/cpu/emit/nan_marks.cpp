#include "backends/cpu/emit/nan_marks.h"

#include <algorithm>

namespace lamina::cpu {

namespace {

// Vectors of single bits are registers on few machines.
llvm::Type* type_of_marks(Emission& e, llvm::Type* vector) {
  const bool in_bits = e.target->keeps_masks_in_bits || !vector->isVectorTy();
  return vector->getWithNewType(in_bits ? e.b.getInt1Ty() : e.b.getIntNTy(vector->getScalarSizeInBits()));
}

}  // namespace

NanMarks::NanMarks(Emission& emission, llvm::Type* type)
    : Part(emission),
      in_masks_(type_of_marks(emission, type)->getScalarType()->isIntegerTy(1)),
      memory_(emission.alloca_at_entry(type_of_marks(emission, type))) {
  reset();
}

void NanMarks::reset() {
  llvm::Type* const type = memory_->getAllocatedType();
  b_.CreateStore(in_masks_ ? llvm::Constant::getAllOnesValue(type) : llvm::Constant::getNullValue(type), memory_);
}

llvm::Value* NanMarks::seen(llvm::Value* a, llvm::Value* b) {
  return in_masks_ ? b_.CreateFCmpORD(a, b) : b_.CreateSExt(b_.CreateFCmpUNO(a, b), memory_->getAllocatedType());
}

llvm::Value* NanMarks::join(llvm::Value* a, llvm::Value* b) { return in_masks_ ? b_.CreateAnd(a, b) : b_.CreateOr(a, b); }

void NanMarks::note(std::span<llvm::Value* const> vectors) {
  llvm::Value* found = nullptr;
  for (size_t i = 0; i < vectors.size(); i += 2) {
    llvm::Value* const here = seen(vectors[i], vectors[std::min(i + 1, vectors.size() - 1)]);
    found = found == nullptr ? here : join(found, here);
  }
  b_.CreateStore(join(marks(), found), memory_);
}

llvm::Value* NanMarks::take_numbers() {
  llvm::Value* const all = marks();
  reset();
  return in_masks_ ? all : b_.CreateICmpEQ(all, llvm::Constant::getNullValue(all->getType()));
}

llvm::Value* NanMarks::take_by_lane(llvm::Value* folded) {
  return b_.CreateSelect(take_numbers(), folded, llvm::ConstantFP::getQNaN(folded->getType()));
}

llvm::Value* NanMarks::take(llvm::Value* folded) {
  llvm::Value* numbers = take_numbers();
  if (numbers->getType()->isVectorTy()) numbers = b_.CreateAndReduce(numbers);
  return b_.CreateSelect(numbers, folded, llvm::ConstantFP::getQNaN(folded->getType()));
}

}  // namespace lamina::cpu
