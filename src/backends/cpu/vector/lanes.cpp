#include "backends/cpu/vector/lanes.h"

#include <bit>

#include "backends/cpu/targets/isa/target_hooks.h"

namespace lamina::cpu {

using kernel::math::Rounding;

FloatLanes::FloatLanes(llvm::IRBuilder<>& builder, llvm::Type* type, const Instructions& target)
    : b_(builder), type_(type), int_type_(nullptr), double_(type->getScalarType()->isDoubleTy()), target_(target) {
  LAMINA_CHECK(double_ || type->getScalarType()->isFloatTy(), "vector mathematics is for float and double");
  LAMINA_CHECK(!builder.getFastMathFlags().any(), "fast-math flags would change bits");
  int_type_ = type->getWithNewType(builder.getIntNTy(double_ ? 64 : 32));
}

llvm::Value* FloatLanes::constant(double value) const { return llvm::ConstantFP::get(type_, value); }

uint64_t FloatLanes::bits_of(double value) const {
  return double_ ? std::bit_cast<uint64_t>(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
}

llvm::Value* FloatLanes::broadcast(V x) const {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
  if (vector == nullptr || x->getType()->isVectorTy()) return x;
  return b_.CreateVectorSplat(vector->getNumElements(), x);
}

// A whole number as an integer of this form, or an end of its range.
llvm::Value* FloatLanes::to_integer(V inside, kernel::math::IntegerForm form, V is_above, V is_below) const {
  using llvm::APInt;
  const auto bits = static_cast<unsigned>(form.bits);
  llvm::Type* const type = type_->getWithNewType(b_.getIntNTy(bits));
  V const largest = llvm::ConstantInt::get(type, form.is_signed ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits));
  V const smallest = llvm::ConstantInt::get(type, form.is_signed ? APInt::getSignedMinValue(bits) : APInt::getMinValue(bits));
  V const converted = form.is_signed ? b_.CreateFPToSI(inside, type) : b_.CreateFPToUI(inside, type);
  return select(is_below, smallest, select(is_above, largest, converted));
}

std::optional<llvm::Value*> FloatLanes::scale_by_power(V x, V k) const {
  if (target_->hooks == nullptr || target_->hooks->scale_by_power == nullptr) return {};
  llvm::Value* const scaled = target_->hooks->scale_by_power(b_, x, k);
  return scaled != nullptr ? std::optional(scaled) : std::nullopt;
}

std::optional<llvm::Value*> FloatLanes::rounded(V x, Rounding rounding) const {
  if (!target_->rounds_to_integer) return {};
  switch (rounding) {
    case Rounding::half_even: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
    case Rounding::down: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
    case Rounding::toward_zero: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
  }
  return {};
}

llvm::Value* FloatLanes::where_any(V condition, V usual, const std::function<V()>& rare) const {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(condition->getType());
  llvm::Value* any = condition;
  if (vector != nullptr && !target_.architecture->tests_masks_as_bits) {
    any = b_.CreateOrReduce(condition);
  } else if (vector != nullptr) {
    llvm::Value* const all = b_.CreateBitCast(condition, b_.getIntNTy(vector->getNumElements()));
    any = b_.CreateICmpNE(all, llvm::ConstantInt::get(all->getType(), 0));
  }
  llvm::Function* const function = b_.GetInsertBlock()->getParent();
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  auto* const there = llvm::BasicBlock::Create(b_.getContext(), "rare", function);
  auto* const after = llvm::BasicBlock::Create(b_.getContext(), "usual", function);
  b_.CreateCondBr(any, there, after, llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  b_.SetInsertPoint(there);
  llvm::Value* const of_rare = rare();
  llvm::BasicBlock* const rare_end = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* const result = b_.CreatePHI(usual->getType(), 2);
  result->addIncoming(usual, before);
  result->addIncoming(of_rare, rare_end);
  return result;
}

}  // namespace lamina::cpu
