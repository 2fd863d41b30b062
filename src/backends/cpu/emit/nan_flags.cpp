#include "backends/cpu/emit/nan_flags.h"

#include <algorithm>

namespace lamina::cpu {

namespace {

// Only few machines have registers for vectors of single bits.
llvm::Type* type_of_marks(Emission& e, llvm::Type* vector) {
  const bool in_bits = e.target->keeps_masks_in_bits || !vector->isVectorTy();
  return vector->getWithNewType(in_bits ? e.b.getInt1Ty() : e.b.getIntNTy(vector->getScalarSizeInBits()));
}

}  // namespace

NanFlags::NanFlags(Emission& emission, llvm::Type* type)
    : Part(emission),
      in_masks_(type_of_marks(emission, type)->getScalarType()->isIntegerTy(1)),
      memory_(emission.alloca_at_entry(type_of_marks(emission, type))) {
  reset();
}

void NanFlags::reset() {
  llvm::Type* const type = memory_->getAllocatedType();
  b_.CreateStore(in_masks_ ? llvm::Constant::getAllOnesValue(type) : llvm::Constant::getNullValue(type), memory_);
}

llvm::Value* NanFlags::seen(llvm::Value* a, llvm::Value* b) {
  return in_masks_ ? b_.CreateFCmpORD(a, b) : b_.CreateSExt(b_.CreateFCmpUNO(a, b), memory_->getAllocatedType());
}

llvm::Value* NanFlags::join(llvm::Value* a, llvm::Value* b) { return in_masks_ ? b_.CreateAnd(a, b) : b_.CreateOr(a, b); }

void NanFlags::note(std::span<llvm::Value* const> vectors) {
  llvm::Value* found = nullptr;
  for (size_t i = 0; i < vectors.size(); i += 2) {
    llvm::Value* const here = seen(vectors[i], vectors[std::min(i + 1, vectors.size() - 1)]);
    found = found == nullptr ? here : join(found, here);
  }
  b_.CreateStore(join(flags(), found), memory_);
}

llvm::Value* NanFlags::take_numbers() {
  llvm::Value* const all = flags();
  reset();
  return in_masks_ ? all : b_.CreateICmpEQ(all, llvm::Constant::getNullValue(all->getType()));
}

llvm::Value* NanFlags::take_by_lane(llvm::Value* folded) {
  return b_.CreateSelect(take_numbers(), folded, llvm::ConstantFP::getQNaN(folded->getType()));
}

llvm::Value* NanFlags::take(llvm::Value* folded) {
  llvm::Value* numbers = take_numbers();
  if (numbers->getType()->isVectorTy()) numbers = b_.CreateAndReduce(numbers);
  return b_.CreateSelect(numbers, folded, llvm::ConstantFP::getQNaN(folded->getType()));
}

}  // namespace lamina::cpu
